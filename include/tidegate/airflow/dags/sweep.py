"""``<pipeline>__sweep``: re-read tables in full; by hand, or by the first ``__changes`` run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Param

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting, tables_param
from tidegate.airflow.operators.job import lake_alias
from tidegate.airflow.operators.spark import TidegateSparkOperator
from tidegate.airflow.outcome import OnHeld


def sweep_arguments(params: Mapping[str, Any]) -> list[str]:
    """The form's answers as arguments of ``sweep_tables``."""
    arguments = ["--lost-only"] if params["lost_only"] else ["--tables", *params["tables"]]
    if params["dry_run"]:
        arguments.append("--dry-run")
    if not params["resume"]:
        arguments.append("--fresh")
    # One word each: an answer may begin with a dash.
    arguments += [f"--{name}={params[name]}" for name in ("where", "reason") if params[name]]
    return arguments


def sweep_params(tables: list[str]) -> dict[str, Param]:
    """The form."""
    return {
        "tables": tables_param(
            tables, "What is re-read. The increments of these tables wait meanwhile."
        ),
        "lost_only": Param(
            False,
            type="boolean",
            title="Only what lost changes",
            description="After a lost slot or a new epoch: instead of the tables above, those that"
            " lost changes. The slot is made anew if need be. Try a dry run first.",
        ),
        "where": Param(
            "",
            type="string",
            title="Key range",
            description="Only these keys, as `id >= 100 and id < 200`; for exactly one table with"
            " one key column. Empty: the whole table.",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description="Show the cut and the chunks; write nothing, close no gate.",
        ),
        "resume": Param(
            True,
            type="boolean",
            title="Resume",
            description="Go on with chunks of a sweep that was killed, where there are any.",
        ),
        "reason": Param(
            "",
            type="string",
            title="Reason",
            description="Goes to the gate's timeline, for those who look at it later.",
        ),
    }


def sweep(setting: Setting) -> DAG:
    """Build the Dag."""
    with setting.dag(
        "sweep",
        schedule=None,
        does="Re-reads tables at one cut into a branch, audits them, publishes them.",
        params=sweep_params(list(setting.pipeline.source.tables)),
        max_active_runs=1,
        is_paused_upon_creation=False,  # runs by hand or by __changes only
    ) as dag:
        swept = TidegateSparkOperator(
            task_id="sweep",
            job="sweep_tables",
            arguments=sweep_arguments,
            on_held=OnHeld.RETRY,
            outlets=[lake_alias(setting.pipeline.pipeline_id)],
            **setting.files,
        )
        report(swept.output)
    return dag
