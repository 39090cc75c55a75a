"""The ledger of dead letters: what one writes is read back, and only what is asked for."""

from __future__ import annotations

from datetime import UTC, datetime

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.dead_letter import Parked, Role
from tidegate.envelope.position import boundary
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
