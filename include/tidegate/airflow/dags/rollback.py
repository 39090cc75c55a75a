"""``<pipeline>__rollback``: take one lake table back to a snapshot; by hand, or by the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Param

from tidegate.airflow.dags.setting import Setting
from tidegate.airflow.operators.spark import TidegateSparkOperator


def rollback_arguments(params: Mapping[str, Any]) -> list[str]:
    """The form's answers as arguments of ``rollback_table``."""
    flags = (("--force", "force"), ("--dry-run", "dry_run"))
    return [
        "--tables",
        params["table"],
        f"--snapshot-id={params['snapshot_id']}",
        *(flag for flag, name in flags if params[name]),
    ]


def rollback_params(tables: list[str]) -> dict[str, Param]:
    """The form."""
    return {
        "table": Param(
            tables[0] if tables else "",
            type="string",
            title="Table",
            description="What goes back, its position with it; the next apply replays.",
            enum=tables or [""],
        ),
        "snapshot_id": Param(
            "0",
            type="string",
            title="Snapshot",
            description="As `tidegate lakehouse snapshots` prints it. Try a dry run first.",
            pattern="^-?[0-9]{1,20}$",
        ),
        "force": Param(
            False,
            type="boolean",
            title="Force",
            description="Even if the change log cannot replay from there; the table is then held"
            " until it is swept.",
        ),
        "dry_run": Param(
            False, type="boolean", title="Dry run", description="Say what would happen."
        ),
    }


def rollback(setting: Setting) -> DAG:
    """Build the Dag."""
    with setting.dag(
        "rollback",
        schedule=None,
        does="Takes one lake table, and its position with it, back to a snapshot.",
        params=rollback_params(list(setting.pipeline.source.tables)),
        max_active_runs=1,
        is_paused_upon_creation=False,  # runs by hand only
    ) as dag:
        TidegateSparkOperator(
            task_id="rollback",
            job="rollback_table",
            arguments=rollback_arguments,
            **setting.files,
        )
    return dag
