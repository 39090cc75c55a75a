"""``<pipeline>__schema``: the live source's schema against the lake's, ahead of time."""

from __future__ import annotations

from airflow.sdk import DAG

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting
from tidegate.airflow.operators.schema import TidegateSchemaOperator


def schema(setting: Setting) -> DAG:
    """Build the Dag."""
    with setting.dag(
        "schema",
        schedule=setting.pipeline.schedules.schema_check,
        does="Says which tables the source's schema will hold, and which need a sweep.",
        max_active_runs=1,
    ) as dag:
        check = TidegateSchemaOperator(task_id="check", **setting.files)
        report(check.output)
    return dag
