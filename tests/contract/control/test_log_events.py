"""Log events that the platform specification names: when, at which level, with which fields."""

from __future__ import annotations

import logging
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.changes import number, schema, text
from tests.support.log_events import Ear
from tests.support.shop import CUSTOMERS, ORDERS, Shop
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.dead_letter import Parked, Role
from tidegate.errors import DataError, HeldError, TidegateError
from tidegate.jobs import run
from tidegate.jobs.apply_result import Status, TableResult
from tidegate.jobs.lag_report import LagReport
from tidegate.jobs.write_errors import say_errors
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.version_news import say_versions
from tidegate.observability import events
from tidegate.observability.progress import silent

PAGE = Path(__file__).parents[3] / "docs/operations/monitoring.md"


def test_lag_is_one_event_for_the_tables_that_stand_somewhere_and_not_too_often(
    shop: Shop, pipeline: PipelineConfig, said: Ear
) -> None:
    at = shop.capture()
    shop.stands(ORDERS, [at])
    shop.orders.insert("1", "x", None)
    shop.orders.commit()
    shop.capture()
    report = LagReport(shop.catalog, pipeline, interval_seconds=3600)
    report.say()
    report.say()
    (lag,) = said.of(events.CONSUMER_LAG)
    assert lag.level == logging.INFO
    assert tuple(lag.fields) == events.FIELDS[events.CONSUMER_LAG]
    assert (lag.fields["pipeline"], lag.fields["total_lag"]) == ("shop", 0x10)
    (orders,) = lag.fields["partitions"]
    assert tuple(orders) == events.PARTITION_FIELDS
    seconds = orders.pop("seconds")
    assert seconds >= 0 and orders == {
        "topic": "cdc.public.orders",
        "partition": 0,
        "lag": 0x10,
        "offset": at.lsn,
        "table": ORDERS,
        "position": str(at),
    }


def test_lag_is_said_inside_a_round_however_long_it_takes(
    shop: Shop,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    said: Ear,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    often = platform.model_copy(update={"lag_monitor_interval_seconds": 0.02})
    enough = threading.Event()
    monkeypatch.setattr(run._Run, "deploy", lambda _: None)  # no source here
    heard = said.emit

    def listen(record: logging.LogRecord) -> None:
        heard(record)
        if len(said.of(events.CONSUMER_LAG)) >= 3:
            enough.set()

    monkeypatch.setattr(said, "emit", listen)

    def step(job: run._Run) -> None:
        assert enough.wait(60), "the round goes on, and lag is said meanwhile"

    for name in ("_sweep", "_capture", "_apply", "_maintain"):
        monkeypatch.setattr(run._Run, name, step)
    done = run.run_pipeline(
        None,  # type: ignore[arg-type]
        pipeline,
        often,
        interval=None,
        stop=threading.Event(),
        progress=silent,
    )
    assert done.rounds == 1 and enough.is_set()


def test_a_new_version_of_a_schema_is_said_once(
    shop: Shop, pipeline: PipelineConfig, said: Ear
) -> None:
    history, at = SchemaHistory(shop.catalog, pipeline), shop.clock.position
    known = shop.orders.schema
    more = replace(known, columns=(*known.columns, text("more")))
    less = replace(more, columns=(more.columns[0], number("note"), *more.columns[2:]))

    def recorded(*schemas: object) -> None:
        say_versions(history, pipeline, history.record_all([(one, at) for one in schemas]))  # type: ignore[misc]

    recorded(known, schema("public.first", number("id", key=0)))
    assert said.of(events.SCHEMA_VERSION_CHANGED) == [], "nothing is new, or it is a first schema"
    shop.clock.commit()
    at = shop.clock.position
    recorded(more)
    recorded(more)
    shop.clock.commit()
    at = shop.clock.position
    recorded(less)
    wider, retyped = said.of(events.SCHEMA_VERSION_CHANGED)
    assert tuple(wider.fields) == events.FIELDS[events.SCHEMA_VERSION_CHANGED]
    assert wider.level == logging.INFO
    assert wider.fields | {"position": "", "schema_id": ""} == {
        "pipeline": "shop",
        "table": ORDERS,
        "subject": "cdc.public.orders-value",
        "previous_version": 1,
        "new_version": 2,
        "schema_id": "",
        "compatible": True,
        "position": "",
    }
    assert wider.fields["schema_id"] == more.schema_id
    assert retyped.level == logging.WARNING and not retyped.fields["compatible"]
    assert (retyped.fields["previous_version"], retyped.fields["new_version"]) == (2, 3)
    assert "note has another type" in retyped.fields["reason"]


def test_what_the_compatibility_mode_minds_is_said_to_be_incompatible(
    shop: Shop, pipeline: PipelineConfig, said: Ear
) -> None:
    sink = {"sink_id": "x", "sink_type": "iceberg", "iceberg": {"compatibility": "FULL"}}
    strict = PipelineConfig.model_validate(pipeline.model_dump() | {"sinks": [sink]})
    history = SchemaHistory(shop.catalog, strict)
    shop.clock.commit()
    less = schema(CUSTOMERS, number("id", key=0), number("must", key=None))
    strictly = replace(less.columns[1], nullable=False)
    new = replace(less, columns=(less.columns[0], text("name"), strictly))
    say_versions(history, strict, history.record_all([(new, shop.clock.position)]))
    (one,) = said.of(events.SCHEMA_VERSION_CHANGED)
    assert (one.level, one.fields["compatible"]) == (logging.WARNING, False)
    assert "not FULL" in one.fields["reason"]


def letter(event: str, role: Role, code: str, shop: Shop) -> Parked:
    at, known = shop.clock.position, shop.orders.schema
    body = {"tx_id": 1, "commit_ts": None, "op": "u", "schema_id": known.schema_id}
    body |= {"before": None, "after": ["1", "v", None], "unchanged": None, "event_id": event}
    return Parked(at, ("1",), ("1",), role, code, "note cannot take it", body)


@pytest.mark.parametrize("sinks", [[], [{"sink_id": "ice", "sink_type": "iceberg", "iceberg": {}}]])
def test_what_could_not_be_written_is_an_error_that_names_the_sink(
    shop: Shop, pipeline: PipelineConfig, said: Ear, sinks: list[object]
) -> None:
    named = PipelineConfig.model_validate(pipeline.model_dump() | {"sinks": sinks})
    letters = DeadLetters(shop.catalog, named)
    failed = letter("e1", Role.FAILED, "apply.cast_failed", shop)
    behind = letter("e2", Role.WAITING, "apply.behind_letter", shop)
    letters.route(ORDERS, "b1", "r1", [failed, behind])

    def result(status: Status, error: TidegateError | None = None, parked: int = 0) -> TableResult:
        return TableResult(ORDERS, status, error=error, parked=parked)

    flood = DataError("apply.too_many_dead_letters", "too many", hint="look")
    other = HeldError("gate.closed", "another writes", hint="wait")
    fine = [result(Status.APPLIED), result(Status.UNCHANGED), result(Status.WAITING, other)]
    say_errors(named, letters, "r1", fine)
    assert said.of(events.SINK_WRITE_ERROR) == []
    say_errors(named, letters, "r1", [result(Status.APPLIED, parked=2)])
    say_errors(named, letters, "r1", [result(Status.HELD, flood)])
    parked, held = said.of(events.SINK_WRITE_ERROR)
    for one in (parked, held):
        assert one.level == logging.ERROR
        assert set(events.FIELDS[events.SINK_WRITE_ERROR]) <= set(one.fields)
        assert one.fields["sink_id"] == ("ice" if sinks else "lake")
    assert (parked.fields["code"], parked.fields["rows"]) == ("apply.cast_failed", 2)
    assert (held.fields["code"], held.fields["rows"]) == (flood.code, 0)


@pytest.mark.parametrize("code", ["apply.schema_incompatible", "schema.incompatible"])
def test_a_change_that_the_lake_does_not_follow_is_an_error_of_its_own(
    shop: Shop, pipeline: PipelineConfig, said: Ear, code: str
) -> None:
    error = HeldError(code, "the source's schema changed", hint="approve")
    result = TableResult(ORDERS, Status.HELD, error=error)
    say_errors(pipeline, DeadLetters(shop.catalog, pipeline), "r1", [result])
    (one,) = said.of(events.SCHEMA_INCOMPATIBLE)
    assert one.level == logging.ERROR
    assert set(one.fields) == {*events.FIELDS[events.SCHEMA_INCOMPATIBLE], "reason"}
    assert said.of(events.SINK_WRITE_ERROR) == []


def test_the_page_of_events_says_what_is_logged() -> None:
    lines = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|.*\|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    rows = {name: set(re.findall(r"`([a-z_]+)`", fields)) for name, fields in lines}
    wanted = {name: set(fields) for name, fields in events.FIELDS.items()}
    wanted[events.CONSUMER_LAG] |= set(events.PARTITION_FIELDS)
    assert rows == wanted
