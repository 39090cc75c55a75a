"""From a job's result to what Airflow does: XCom, retry, skip or fail."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from tidegate.errors import STOPPED_CODE, Decision, TidegateError, decide
from tidegate.jobs.lines import public, table_line
from tidegate.jobs.result import JobResult

FAILED_STATES = frozenset({"failed", "different", "incompatible", "gone", "needs_sweep"})
HELD_STATE = "held"


class OnHeld(StrEnum):
    """What a task does when a gate or lease holds its work back."""

    SKIP = "skip"  # the next scheduled run goes on
    RETRY = "retry"  # someone asked for it: try again


def settle(outcome: JobResult | None, *, on_held: OnHeld, died: str) -> dict[str, Any]:
    """The XCom value of a job that ended well; the exception that fits one that did not."""
    if outcome is None:
        raise AirflowException(f"{died}; no result was written")
    if outcome.error is not None:
        raise_for(outcome.error, on_held)
    return summary(outcome)


def raise_for(error: TidegateError, on_held: OnHeld) -> None:
    """Config, data and fatal errors fail at once; retriable ones back off; held ones wait. A stop
    is no failure, whoever asked: the task is skipped with the reason."""
    if error.code == STOPPED_CODE:
        raise AirflowSkipException(str(error))
    match decide(error):
        case Decision.STOP:
            raise AirflowFailException(str(error))
        case Decision.WAIT if on_held is OnHeld.SKIP:
            raise AirflowSkipException(str(error))
        case _:
            raise AirflowException(str(error))


def summary(outcome: JobResult) -> dict[str, Any]:
    """Counts, positions and states; nothing that could hold a row value (I9)."""
    return {
        "job": outcome.job,
        "run": outcome.run,
        "seconds": outcome.seconds,
        **public(outcome.result),
        "tables": [public(entry) for entry in outcome.tables],
        **_change_log(outcome.result),
    }


def _change_log(result: Mapping[str, Any]) -> dict[str, Any]:
    """Upkeep's word on the change log, beside the tables'."""
    entry = result.get("change_log")
    return {"change_log": public(entry)} if isinstance(entry, Mapping) else {}


def failed_tables(value: dict[str, Any]) -> list[dict[str, str]]:
    """The tables a job could not bring through, each with what is to be said of it."""
    return [
        {"table": entry["table"], "line": table_line(entry)}
        for entry in value["tables"]
        if failed(entry)
    ]


def failed(entry: Mapping[str, Any]) -> bool:
    """Failed, different, or held by this very run; a gate someone else closed is no failure."""
    status = entry.get("status")
    return status in FAILED_STATES or (status == HELD_STATE and bool(entry.get("error")))


def tables_in(value: dict[str, Any], *states: str) -> list[str]:
    """Tables whose status is one of ``states``."""
    return [entry["table"] for entry in value["tables"] if entry.get("status") in states]
