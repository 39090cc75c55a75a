"""``<pipeline>__maintenance``: what upkeep is due."""

from __future__ import annotations

from airflow.sdk import DAG

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting
from tidegate.airflow.operators.spark import TidegateSparkOperator


def maintenance(setting: Setting) -> DAG:
    """Compaction, manifests, expiry, orphan files and change-log retention, each when due."""
    with setting.dag(
        "maintenance",
        schedule=setting.pipeline.schedules.maintenance,
        does="Does the upkeep of the lake tables and the change log that is due.",
        max_active_runs=1,
    ) as dag:
        maintain = TidegateSparkOperator(task_id="maintain", job="maintain_tables", **setting.files)
        report(maintain.output)
    return dag
