"""Retries by error class; XCom holds counts, positions and states only."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from tidegate.airflow.outcome import OnHeld, failed_tables, settle, tables_in
from tidegate.errors import (
    ConfigError,
    DataError,
    FatalError,
    HeldError,
    RetriableError,
    SetupError,
    TidegateError,
)
from tidegate.jobs.result import JobResult

CANARY = "row-value-canary"


def ended(error: TidegateError | None = None, **result: object) -> JobResult:
    return JobResult("apply_changes", "r1", 1.5, dict(result), error)


@pytest.mark.parametrize("kind", [ConfigError, SetupError, DataError, FatalError])
def test_what_trying_again_cannot_mend_fails_at_once(kind: type[TidegateError]) -> None:
    error = kind("area.reason", "it is broken", hint="mend it")
    with pytest.raises(AirflowFailException, match=r"it is broken .* mend it"):
        settle(ended(error), on_held=OnHeld.SKIP, died="")


def test_a_passing_condition_is_tried_again() -> None:
    error = RetriableError("lake.moved", "someone was faster", hint="try again")
    with pytest.raises(AirflowException) as caught:
        settle(ended(error), on_held=OnHeld.SKIP, died="")
    assert not isinstance(caught.value, (AirflowFailException, AirflowSkipException))


def test_held_work_is_skipped_with_the_reason() -> None:
    error = HeldError("gate.lease", "a sweep holds public.orders", hint="wait")
    with pytest.raises(AirflowSkipException, match="a sweep holds"):
        settle(ended(error), on_held=OnHeld.SKIP, died="")


def test_held_work_someone_asked_for_is_tried_again() -> None:
    error = HeldError("gate.lease", "an apply holds public.orders", hint="wait")
    with pytest.raises(AirflowException) as caught:
        settle(ended(error), on_held=OnHeld.RETRY, died="")
    assert not isinstance(caught.value, AirflowSkipException)


@pytest.mark.parametrize("on_held", OnHeld)
def test_a_stopped_pipeline_is_skipped_whoever_asked(on_held: OnHeld) -> None:
    error = HeldError("pipeline.stopped", "shop was stopped by ann", hint="start it")
    with pytest.raises(AirflowSkipException, match="stopped by ann"):
        settle(ended(error), on_held=on_held, died="")


def test_a_process_that_died_without_a_word_is_tried_again() -> None:
    with pytest.raises(AirflowException, match="ended with status 137") as caught:
        settle(None, on_held=OnHeld.SKIP, died="capture ended with status 137")
    assert not isinstance(caught.value, AirflowFailException)


def test_row_values_do_not_reach_xcom() -> None:
    table = {
        "table": "public.orders",
        "status": "applied",
        "inserted": 3,
        "position": "e/1",
        "first_keys": [CANARY],
        "sample": CANARY,
        "nested": {"deep": CANARY},
    }
    value = settle(ended(tables=[table], note=CANARY, through="e/2"), on_held=OnHeld.SKIP, died="")
    assert CANARY not in repr(value)
    assert value["through"] == "e/2"
    assert value["tables"] == [
        {"table": "public.orders", "status": "applied", "inserted": 3, "position": "e/1"}
    ]


def test_failed_and_missing_tables_are_found() -> None:
    error = DataError("cast.scale", "too many digits", hint="see the column").to_dict()
    value = settle(
        ended(
            tables=[
                {"table": "a", "status": "applied"},
                {"table": "b", "status": "failed", "error": error},
                {"table": "c", "status": "missing"},
                {"table": "d", "status": "different", "missing": 2},
                {"table": "e", "status": "held", "reason": "held by ann"},
                {"table": "f", "status": "held", "error": error},
            ]
        ),
        on_held=OnHeld.SKIP,
        died="",
    )
    failed = failed_tables(value)
    assert [entry["table"] for entry in failed] == ["b", "d", "f"]
    assert failed[0]["line"] == "b: failed, too many digits [cast.scale] → see the column"
    assert failed[1]["line"] == "d: different, missing 2"
    assert tables_in(value, "missing") == ["c"]
