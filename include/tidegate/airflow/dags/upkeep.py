"""``<pipeline>__maintenance``: what upkeep is due."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from airflow.sdk import DAG, Param

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting, tables_param
from tidegate.airflow.operators.spark import TidegateSparkOperator


def upkeep_arguments(tables: tuple[str, ...], params: Mapping[str, Any]) -> list[str]:
    """The form's answers as arguments of ``maintain_tables``. All tables: the change log too."""
    whole = set(params["tables"]) == set(tables)
    chosen = [] if whole else ["--tables", *params["tables"]]
    flags = (("--force", "force"), ("--dry-run", "dry_run"))
    return chosen + [flag for flag, name in flags if params[name]]


def upkeep_params(tables: list[str]) -> dict[str, Param]:
    """The form; a scheduled run takes its defaults."""
    return {
        "tables": tables_param(tables, "Whose upkeep. All of them: the change log's too."),
        "force": Param(
            False,
            type="boolean",
            title="Whether due or not",
            description="Ages are still respected.",
        ),
        "dry_run": Param(
            False, type="boolean", title="Dry run", description="Say what is due; do nothing."
        ),
    }


def maintenance(setting: Setting) -> DAG:
    """Compaction, manifests, expiry, orphan files and change-log retention, each when due."""
    with setting.dag(
        "maintenance",
        schedule=setting.pipeline.schedules.maintenance,
        does="Does the upkeep of the lake tables and the change log that is due.",
        params=upkeep_params(list(setting.pipeline.source.tables)),
        max_active_runs=1,
    ) as dag:
        maintain = TidegateSparkOperator(
            task_id="maintain",
            job="maintain_tables",
            arguments=partial(upkeep_arguments, setting.pipeline.source.tables),
            **setting.files,
        )
        report(maintain.output)
    return dag
