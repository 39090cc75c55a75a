"""The schema history: which schema a table had when."""

from __future__ import annotations

import pytest
from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import boundary
from tidegate.errors import FatalError
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, TextRule

ORDERS = TableId("public", "orders")


def schema(*names: str, table: TableId = ORDERS) -> TableSchema:
    return TableSchema(table, tuple(Column(n, "text", STRING, TextRule.PLAIN) for n in names))


A, B = schema("id"), schema("id", "note")


@pytest.fixture
def history(catalog: Catalog, pipeline: PipelineConfig) -> SchemaHistory:
    return SchemaHistory(catalog, pipeline)


def test_an_empty_history_knows_nothing(history: SchemaHistory) -> None:
    assert history.latest(ORDERS) is None
    assert history.all() == []
    with pytest.raises(FatalError) as caught:
        history.get("nope")
    assert caught.value.code == "schema.unknown"


def test_what_was_recorded_is_found_again(
    catalog: Catalog, pipeline: PipelineConfig, history: SchemaHistory
) -> None:
    schema_id = history.record(A, boundary("e1", 10))
    again = SchemaHistory(catalog, pipeline)
    assert again.get(schema_id) == A
    assert again.latest(ORDERS) == A


def test_recording_the_schema_in_force_again_writes_nothing(history: SchemaHistory) -> None:
    for lsn in (10, 10, 15):
        history.record(A, boundary("e1", lsn))
    assert len(history.all()) == 1


def test_a_schema_that_comes_back_is_the_latest_again(history: SchemaHistory) -> None:
    for lsn, kind in ((10, A), (20, B), (30, A)):
        history.record(kind, boundary("e1", lsn))
    assert history.latest(ORDERS) == A
    # A capture that reads the same log again after a crash changes nothing.
    for lsn, kind in ((10, A), (15, A), (20, B), (25, B), (30, A)):
        history.record(kind, boundary("e1", lsn))
    assert [entry.schema for entry in history.all(ORDERS)] == [A, B, A]


def test_a_new_epoch_begins_its_own_history(history: SchemaHistory) -> None:
    history.record(A, boundary("e1", 1000))
    history.record(B, boundary("e2", 10))
    assert history.latest(ORDERS) == B


def test_tables_do_not_mix(history: SchemaHistory) -> None:
    other = schema("x", table=TableId("public", "customers"))
    history.record(A, boundary("e1", 10))
    history.record(other, boundary("e1", 20))
    assert history.latest(ORDERS) == A
    assert [e.schema for e in history.all(other.table)] == [other]


def test_two_writers_both_land(
    catalog: Catalog, pipeline: PipelineConfig, history: SchemaHistory
) -> None:
    rival = SchemaHistory(catalog, pipeline)
    history.record(A, boundary("e1", 10))
    rival.record(B, boundary("e1", 20))
    history.record(schema("z"), boundary("e1", 30))
    assert [entry.seq for entry in rival.all()] == [1, 2, 3]
