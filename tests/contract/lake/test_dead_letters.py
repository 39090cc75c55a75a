"""The ledger of dead letters: what one writes is read back, and only what is asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.dead_letter import Parked, Role
from tidegate.envelope.position import boundary
from tidegate.lake import dead_letters
from tidegate.lake.dead_letter_fold import Lineage, fold
from tidegate.lake.dead_letters import DeadLetters

ORDERS = "public.orders"
CUT = boundary("e1", 7)


def row_of_a_sweep(key: str) -> Parked:
    """As a sweep sets it aside: all of them stand at the cut."""
    event = {
        "tx_id": None,
        "commit_ts": datetime(2026, 1, 2, tzinfo=UTC),
        "op": "r",
        "schema_id": "s1",
        "before": None,
        "after": [key, "infinity"],
        "unchanged": None,
        "event_id": f"e-{key}",
    }
    return Parked(CUT, (key,), (key,), Role.FAILED, "apply.cast_failed", "due", event)


def test_values_are_read_of_the_letters_asked_for_only(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    letters = DeadLetters(catalog, pipeline)
    letters.supersede(ORDERS, "b1", "run1")
    letters.route(ORDERS, "b1", "run1", [row_of_a_sweep("1"), row_of_a_sweep("2")])
    waiting = fold(letters._load(), Lineage({"b1": 1}, frozenset({1})))
    assert [letter.key for letter in waiting] == [("1",), ("2",)]
    assert {letter.position for letter in waiting} == {CUT}
    assert letters.values([]) == {}
    found = letters.values(waiting[1:])
    assert {name: row["after"] for name, row in found.items()} == {"e-2": ["2", "infinity"]}


def test_a_table_of_an_older_release_takes_letters_with_all_their_facts(
    catalog: Catalog, pipeline: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = Schema(*(f for f in dead_letters._SCHEMA.fields if f.name not in ("sink_id", "stack")))
    before = DeadLetters(catalog, pipeline)
    with monkeypatch.context() as past:
        past.setattr(dead_letters, "_SCHEMA", older)
        DeadLetters(catalog, pipeline)._ledger.open()
    assert before._load() == ()
    assert "stack" not in catalog.load_table(before.identifier).schema().column_names
    failed = replace(row_of_a_sweep("1"), stack="tidegate/spark/apply.py:1 in write")
    before.route(ORDERS, "b1", "run1", [failed])
    (letter,) = fold(before._load(), Lineage({"b1": 1}, frozenset({1})))
    row = before.values([letter])["e-1"]
    assert (row["sink_id"], row["stack"]) == ("lake", failed.stack)
    before.route(ORDERS, "b2", "run1", [row_of_a_sweep("2")])
    assert len(before._load()) == 2


def test_a_sweep_of_the_same_name_is_known_to_have_set_rows_aside(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    letters = DeadLetters(catalog, pipeline)
    assert not letters.parked_by(ORDERS, "run1")
    letters.supersede(ORDERS, "b1", "run1")
    assert not letters.parked_by(ORDERS, "run1")
    letters.route(ORDERS, "b1", "run1", [row_of_a_sweep("1")])
    assert letters.parked_by(ORDERS, "run1")
    assert not letters.parked_by(ORDERS, "run2")
    assert not letters.parked_by("public.customers", "run1")


def test_a_run_that_reads_once_still_sees_what_it_wrote_itself(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    once, other = DeadLetters(catalog, pipeline, read_once=True), DeadLetters(catalog, pipeline)
    assert once._load() == ()
    other.route(ORDERS, "b1", "run1", [row_of_a_sweep("1")])
    assert once._load() == ()
    assert len(other._load()) == 1
    once.tried(ORDERS, "run2", ["e-1"])
    assert [record.kind for record in once._load()] == ["parked", "tried"]
