"""Start the sweep Dag for tables that have no lake table yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context, DagRunState
from airflow.sdk.exceptions import AirflowSkipException

from tidegate.airflow.outcome import tables_in


class FirstSweepOperator(TriggerDagRunOperator):
    """Triggers ``<pipeline>__sweep`` for the tables that ``applied`` reports as missing.

    Skipped where none is missing, and while a run of the sweep Dag is queued or under way.

    :param applied: the XCom value of an apply (templated).
    """

    template_fields: Sequence[str] = (*TriggerDagRunOperator.template_fields, "applied")

    def __init__(self, *, applied: Any, **kwargs: Any) -> None:
        super().__init__(openlineage_inject_parent_info=False, **kwargs)
        self.applied = applied

    def execute(self, context: Context) -> None:
        missing = tables_in(self.applied, "missing")
        if not missing:
            raise AirflowSkipException("Every table has its lake table.")
        under_way = context["ti"].get_dr_count(
            dag_id=self.trigger_dag_id, states=[DagRunState.QUEUED, DagRunState.RUNNING]
        )
        if under_way:
            raise AirflowSkipException(
                f"{', '.join(missing)} await their first sweep; {self.trigger_dag_id} is under way."
            )
        self.log.info("First sweep of %s", ", ".join(missing))
        self.conf = {"tables": missing, "reason": "first load"}
        super().execute(context)
