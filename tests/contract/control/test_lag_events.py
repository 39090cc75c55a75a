"""Log events that the platform specification names."""

from __future__ import annotations

import logging

import pytest

from tests.support.changes import number, schema, text
from tests.support.shop import ORDERS, Shop
from tidegate.config.pipeline import PipelineConfig
from tidegate.jobs.lag_report import LagReport
from tidegate.lake.schema_history import SchemaHistory
from tidegate.observability import log


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Events as they are logged: name and fields."""
    monkeypatch.setattr(logging.getLogger(log.ROOT), "propagate", True)
    found: list[dict[str, str]] = []
    caplog.set_level(logging.INFO, log.ROOT)
    caplog.handler.emit = lambda record: found.append(  # type: ignore[method-assign]
        {"event": record.getMessage(), **log.fields_of(record)}
    )
    return found


def test_lag_is_said_for_tables_that_stand_somewhere_and_not_too_often(
    shop: Shop, pipeline: PipelineConfig, said: list[dict[str, str]]
) -> None:
    at = shop.capture()
    shop.stands(ORDERS, [at])
    shop.orders.insert("1", "x", None)
    shop.orders.commit()
    shop.capture()
    report = LagReport(shop.catalog, pipeline, interval_seconds=3600)
    report.say()
    report.say()
    (lag,) = [event for event in said if event["event"] == "consumer.lag"]
    assert (lag["table"], lag["bytes"], lag["position"]) == (ORDERS, 0x10, str(at))


def test_a_new_version_of_a_schema_is_said(
    shop: Shop, pipeline: PipelineConfig, said: list[dict[str, str]]
) -> None:
    history = SchemaHistory(shop.catalog, pipeline)
    wider = schema(ORDERS, number("id", key=0), text("note"), text("more"))
    history.record(wider, shop.clock.position)
    history.record(wider, shop.clock.position)
    (changed,) = [event for event in said if event["event"] == "schema.version_changed"]
    assert changed["table"] == ORDERS
