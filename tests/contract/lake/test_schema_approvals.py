"""Approvals are durable, one by one, and found by the schema they are about."""

from __future__ import annotations

import threading

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import boundary
from tidegate.lake.approvals import Approval, Approvals
from tidegate.lake.lineage import read_lineage
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, TextRule

ORDERS = TableId("public", "orders")


def schema(*names: str) -> TableSchema:
    columns = tuple(Column(name, "text", STRING, TextRule.PLAIN) for name in names)
    return TableSchema(ORDERS, columns)


def test_an_approval_is_found_again_with_everything_it_says(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    assert Approvals(catalog, pipeline).all() == []
    given = Approval(
        "public.orders", "abc", boundary("e1", 10), "ann", "renamed", {"a": "b"}, {"c": "int"}
    )
    Approvals(catalog, pipeline).add(given)
    (found,) = Approvals(catalog, pipeline).all("public.orders")
    assert found.recorded_at is not None
    assert (found.renames, found.casts, found.at) == (given.renames, given.casts, given.at)
    assert Approvals(catalog, pipeline).all("public.other") == []


def test_writers_at_once_lose_nothing(catalog: Catalog, pipeline: PipelineConfig) -> None:
    def give(number: int) -> None:
        own = Approval("public.orders", f"s{number}", boundary("e1", number), "ann")
        Approvals(catalog, pipeline).add(own)

    threads = [threading.Thread(target=give, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Approvals(catalog, pipeline).all()
    assert sorted(approval.schema_id for approval in found) == ["s0", "s1", "s2", "s3"]


def test_it_is_of_the_version_that_begins_where_it_says(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    history = SchemaHistory(catalog, pipeline)
    target = pipeline.target(ORDERS)
    a, b = schema("id"), schema("id", "note")
    for lsn, kind in ((10, a), (20, b), (30, a), (40, b)):
        history.record(kind, boundary("e1", lsn))
    history.approvals.add(Approval("public.orders", b.schema_id, boundary("e1", 20), "ann"))
    versions = read_lineage(history, target).versions
    assert [version.approval is not None for version in versions] == [False, True, False, False]
    assert history.at(ORDERS, boundary("e1", 25)) == b
    assert history.at(ORDERS, boundary("e1", 5)) is None
