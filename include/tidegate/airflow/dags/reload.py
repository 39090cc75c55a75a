"""``<pipeline>__reload``: the rows of a run's data interval again, by key.

``airflow backfill create --dag-id <pipeline>__reload --from-date … --to-date …`` runs it over a
range of days.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting, tables_param
from tidegate.airflow.operators.job import lake_alias
from tidegate.airflow.operators.spark import TidegateSparkOperator
from tidegate.airflow.outcome import OnHeld
from tidegate.config.pipeline import PipelineConfig

INTERVAL: Final = (
    "--from={{ data_interval_start.isoformat() }}",
    "--to={{ data_interval_end.isoformat() }}",
)


def reload_tables(pipeline: PipelineConfig) -> list[str]:
    """The tables that say which rows belong to an interval."""
    return [target.source for target in pipeline.targets if target.options.reload is not None]


def reload_arguments(params: Mapping[str, Any]) -> list[str]:
    """The form's answers as arguments of ``reload_tables``."""
    return ["--tables", *params["tables"], *(["--dry-run"] if params["dry_run"] else [])]


def reload(setting: Setting) -> DAG:
    """Build the Dag. Its timetable has data intervals, without which there is no backfill."""
    schedule = setting.pipeline.schedules.reload
    with setting.dag(
        "reload",
        schedule=CronDataIntervalTimetable(schedule, timezone="UTC") if schedule else None,
        does="Reads the rows of its data interval again, by key, and mends those that differ.",
        params={
            "tables": tables_param(reload_tables(setting.pipeline), "Whose rows are read again."),
            "dry_run": Param(
                False,
                type="boolean",
                title="Dry run",
                description="Only say how many rows would change.",
            ),
        },
        max_active_runs=1,
    ) as dag:
        reloaded = TidegateSparkOperator(
            task_id="reload",
            job="reload_tables",
            options=INTERVAL,
            arguments=reload_arguments,
            on_held=OnHeld.RETRY,
            outlets=[lake_alias(setting.pipeline.pipeline_id)],
            **setting.files,
        )
        report(reloaded.output)
    return dag
