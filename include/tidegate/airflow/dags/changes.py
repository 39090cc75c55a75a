"""``<pipeline>__changes``: capture, apply what is open, let closed tables wait by themselves."""

from __future__ import annotations

import logging
from typing import Final

from airflow.sdk import DAG, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting
from tidegate.airflow.gates import read_gates
from tidegate.airflow.operators.capture import TidegateCaptureOperator
from tidegate.airflow.operators.first_sweep import FirstSweepOperator
from tidegate.airflow.operators.job import lake_alias
from tidegate.airflow.operators.register import TidegateRegisterOperator
from tidegate.airflow.operators.spark import TidegateSparkOperator
from tidegate.airflow.schedule import period_seconds
from tidegate.airflow.sensors.gate import TableGateSensor
from tidegate.config.source import SnapshotMode

ACTIVE_RUNS: Final = 3
"""A run whose gate waits must not hold back the next one's open tables."""
GATES_PER_RUN: Final = 16
"""Each opened gate is one more Spark application; beyond this the next run's one takes them all."""

log = logging.getLogger(__name__)


@task(task_id="closed_tables")
def list_closed(pipeline_file: str, platform_file: str | None) -> list[str]:
    """Tables whose gate is not open; what ``gate`` is mapped over."""
    closed = []
    for table, view in read_gates(pipeline_file, platform_file).items():
        if view.stopped:
            raise AirflowSkipException(view.text)
        if not view.open:
            log.info(view.text)
            closed.append(table)
    if len(closed) > GATES_PER_RUN:
        raise AirflowSkipException(
            f"{len(closed)} tables are closed, more than {GATES_PER_RUN}:"
            " a later run applies them together once they open."
        )
    return closed


def wait_seconds(setting: Setting) -> float:
    """Wait until about the next run, which looks again; never longer than ``gate.wait_seconds``."""
    limit = setting.platform.gate.wait_seconds
    period = period_seconds(setting.pipeline.schedules.changes)
    return limit if period is None else min(limit, period)


def changes(setting: Setting) -> DAG:
    """Build the Dag."""
    alias = lake_alias(setting.pipeline.pipeline_id)
    with setting.dag(
        "changes",
        schedule=setting.pipeline.schedules.changes,
        does="Captures the source's changes and applies them to every table whose gate is open.",
        max_active_runs=ACTIVE_RUNS,
    ) as dag:
        # One at a time over all runs: the replication slot admits one reader.
        capture = TidegateCaptureOperator(
            task_id="capture", max_active_tis_per_dag=1, **setting.files
        )
        apply_open = TidegateSparkOperator(
            task_id="apply_open",
            job="apply_changes",
            outlets=[alias],
            max_active_tis_per_dag=1,
            **setting.files,
        )
        capture >> apply_open
        report(apply_open.output)
        if setting.platform.registry_url is not None:
            capture >> TidegateRegisterOperator(
                task_id="register_schemas",
                retries=0,  # the next run is the next try
                max_active_tis_per_dag=1,
                **setting.files,
            )
        if setting.pipeline.source.snapshot_mode is SnapshotMode.INITIAL:
            FirstSweepOperator(
                task_id="first_sweep",
                trigger_dag_id=setting.dag_id("sweep"),
                applied=apply_open.output,
                fail_when_dag_is_paused=True,
            )

        @task_group(group_id="held", prefix_group_id=False)
        def held(table: str) -> None:
            gate = TableGateSensor(
                task_id="gate",
                table=table,
                wait_seconds=wait_seconds(setting),
                map_index_template="{{ task.table }}",
                **setting.files,
            )
            apply_held = TidegateSparkOperator(
                task_id="apply_held",
                job="apply_changes",
                tables=[table],
                outlets=[alias],
                strict=True,
                max_active_tis_per_dag=1,
                map_index_template="{{ task.tables[0] }}",
                **setting.files,
            )
            gate >> apply_held

        closed = list_closed(**setting.files)
        capture >> closed
        held.expand(table=closed)
    return dag
