"""Tables that failed, each as a red task of its own."""

from __future__ import annotations

from typing import Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowFailException

from tidegate.airflow.outcome import failed_tables


@task(task_id="failed_tables", retries=0)
def list_failed(value: dict[str, Any]) -> list[dict[str, str]]:
    """What ``report`` is mapped over; none, and ``report`` is skipped."""
    return failed_tables(value)


@task(task_id="report", retries=0, map_index_template="{{ task.op_kwargs['failed']['table'] }}")
def report_failed(failed: dict[str, str]) -> None:
    """Red, with the reason: one table's failure neither hides nor stops the others."""
    raise AirflowFailException(failed["line"])


def report(value: Any) -> None:
    """Add the two tasks behind a job whose XCom is ``value``."""
    report_failed.expand(failed=list_failed(value))
