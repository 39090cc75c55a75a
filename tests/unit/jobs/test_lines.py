"""One line per table; only facts that cannot hold a row value."""

from __future__ import annotations

from tidegate.errors import DataError
from tidegate.jobs.lines import public, table_line, table_lines

CANARY = "row-value-canary"


def test_a_line_says_what_happened_and_leaves_out_what_did_not() -> None:
    entry = {
        "table": "public.orders",
        "status": "applied",
        "inserted": 12,
        "updated": 0,
        "truncated": False,
        "seconds": 1.26,
        "adjusted": {"amount": 2, "note": 0},
        "error": None,
    }
    assert table_line(entry) == (
        "public.orders: applied, inserted 12, seconds 1.3, adjusted amount 2"
    )


def test_a_line_ends_with_the_reason() -> None:
    error = DataError("cast.scale", "too many digits", hint="see the column").to_dict()
    assert table_line({"table": "a", "status": "failed", "reason": "x", "error": error}) == (
        "a: failed, too many digits [cast.scale] → see the column"
    )
    assert table_line({"table": "a", "status": "held", "reason": "held by ann"}) == (
        "a: held, held by ann"
    )


def test_upkeep_says_its_steps_and_counts() -> None:
    entry = {
        "table": "a",
        "status": "maintained",
        "done": ["compact", "expire"],
        "work": {"files_expired": 3, "compacted": {"files": 12}, "branches_dropped": []},
    }
    assert table_line(entry) == (
        "a: maintained, done compact, expire, work files expired 3, work compacted files 12"
    )


def test_text_passes_under_known_names_only() -> None:
    entry = {
        "table": "a",
        "first": [CANARY],
        "sample": CANARY,
        "keys": {"id": CANARY},
        "work": {"deep": CANARY},
        "adjusted": {"column": CANARY},
    }
    assert CANARY not in repr(public(entry)) + table_line(entry)


def test_what_was_made_public_stays_so() -> None:
    entry = {"table": "a", "status": "applied", "adjusted": {"amount": 2}}
    assert table_line(public(entry)) == table_line(entry)


def test_a_job_without_tables_is_one_line() -> None:
    assert list(table_lines({"rows": 3, "through": "e/1"})) == ["rows 3, through e/1"]
    assert list(table_lines({"tables": [{"table": "a"}, {"table": "b"}]})) == ["a: ", "b: "]
