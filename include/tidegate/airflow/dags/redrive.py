"""``<pipeline>__redrive``: apply dead letters once more, by hand, after their cause was mended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Param

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting
from tidegate.airflow.operators.job import lake_alias
from tidegate.airflow.operators.spark import TidegateSparkOperator


def redrive_arguments(params: Mapping[str, Any]) -> list[str]:
    """The form's answers as arguments of ``redrive_dead_letters``."""
    arguments = ["--tables", *params["tables"]]
    if params["dry_run"]:
        arguments.append("--dry-run")
    # One word each: an answer may begin with a dash.
    arguments += [f"--code={code}" for code in params["codes"]]
    return [*arguments, *(f"--event-id={one}" for one in params["event_ids"])]


def redrive_params(tables: list[str]) -> dict[str, Param]:
    """The form."""
    return {
        "tables": Param(
            tables,
            type="array",
            title="Tables",
            description="Whose dead letters are applied once more.",
            items={"type": "string", "enum": tables},
            examples=tables,  # what makes the form a multi-select
            minItems=1,
            uniqueItems=True,
        ),
        "codes": Param(
            [],
            type="array",
            title="Error codes",
            description="Only letters with these codes (apply.cast_failed, …). Empty: all.",
            items={"type": "string"},
        ),
        "event_ids": Param(
            [],
            type="array",
            title="Letters",
            description="Only these, as `tidegate dead-letters list` prints them; all letters of a"
            " row go together. Empty: all.",
            items={"type": "string"},
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description="Count them; apply nothing.",
        ),
    }


def redrive(setting: Setting) -> DAG:
    """Build the Dag."""
    with setting.dag(
        "redrive",
        schedule=None,
        does="Applies dead letters once more, in order, after their cause was mended.",
        params=redrive_params(list(setting.pipeline.source.tables)),
        max_active_runs=1,
        is_paused_upon_creation=False,  # runs by hand only
    ) as dag:
        redriven = TidegateSparkOperator(
            task_id="redrive",
            job="redrive_dead_letters",
            arguments=redrive_arguments,
            outlets=[lake_alias(setting.pipeline.pipeline_id)],
            **setting.files,
        )
        report(redriven.output)
    return dag
