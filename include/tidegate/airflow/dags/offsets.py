"""``<pipeline>__offsets``: set one table's position; by hand, or by the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Param

from tidegate.airflow.dags.setting import Setting
from tidegate.airflow.operators.spark import TidegateSparkOperator


def offset_arguments(params: Mapping[str, Any]) -> list[str]:
    """The form's answers as arguments of ``set_offset``."""
    flags = (("--skip", "skip"), ("--dry-run", "dry_run"))
    return [
        "--tables",
        params["table"],
        f"--position={params['position']}",
        *(flag for flag, name in flags if params[name]),
        # One word each: an answer may begin with a dash.
        *(f"--{name}={params[name]}" for name in ("expect", "reason") if params[name]),
    ]


def offset_params(tables: list[str]) -> dict[str, Param]:
    """The form."""
    return {
        "table": Param(
            tables[0] if tables else "",
            type="string",
            title="Table",
            description="Its rows stay; one empty commit carries the position.",
            enum=tables or [""],
        ),
        "position": Param(
            "",
            type="string",
            title="Position",
            description="As `tidegate offsets` prints it, or an LSN. Try a dry run first.",
        ),
        "skip": Param(
            False,
            type="boolean",
            title="Skip",
            description="Forward is meant: changes in between are never applied, and the table"
            " differs from its source until it is swept.",
        ),
        "expect": Param(
            "",
            type="string",
            title="Only if it stands at",
            description="If the table has moved from there, nothing is done.",
        ),
        "reason": Param(
            "", type="string", title="Reason", description="It stands in the audit trail."
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description="Say how many changes would be applied again, or left out.",
        ),
    }


def offsets(setting: Setting) -> DAG:
    """Build the Dag."""
    with setting.dag(
        "offsets",
        schedule=None,
        does="Sets one table's position: back to replay changes, forward to skip them.",
        params=offset_params(list(setting.pipeline.source.tables)),
        max_active_runs=1,
        is_paused_upon_creation=False,  # runs by hand only
    ) as dag:
        TidegateSparkOperator(
            task_id="set_offset", job="set_offset", arguments=offset_arguments, **setting.files
        )
    return dag
