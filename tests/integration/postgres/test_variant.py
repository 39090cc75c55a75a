"""Documents as variants: the same by sweep and by log, in every write mode, and never inexact."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as F

from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate.config.verify import extent
from tidegate.control import dead_letters
from tidegate.control.validation import validate_pipeline
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.maintain import run_maintain
from tidegate.jobs.redrive import run_redrive
from tidegate.jobs.rollback import run_rollback
from tidegate.jobs.verdict import TableVerdict
from tidegate.jobs.verify import run_verify
from tidegate.lake.dead_letter_choice import Choice
from tidegate.lake.query import query
from tidegate.spark.publish import spark_name
from tidegate.spark.verify import Difference
from tidegate.testing.conformance.readers import duckdb_connection

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.docs"
COLUMNS = {name: {"type": "variant"} for name in ("doc", "raw", "later")}
"""The last one is added at the source one day."""
EXPECTATION = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "note"}}
DOCUMENTS = (
    '{"b": 1.50, "a": [1, null, {"z": "é😀"}], "n": 12345678901234567890123456789012345678}',
    "null",
    None,
    r'["\u0041\"\\", {}, [], "", true, -0.5, 9223372036854775808]',
    '{"k": {"k": {"k": [0.00000000000000000000000000000000000001]}}}',
)
TOASTED = 50
"""Out of line: an update that leaves it alone does not send it."""
EAGER = {"compaction_interval_seconds": 0, "compaction_file_threshold": 2, "retain_last": 1}


@pytest.fixture
def docs(source_db: SourceDatabase, stack: Callable[..., Stack]) -> Callable[..., Stack]:
    """Every document in a row of its own, and a large one; not yet swept."""

    def make(**lake: Any) -> Stack:
        source_db.sql(
            "CREATE TABLE docs (id int PRIMARY KEY, doc jsonb, raw json, note text)",
            "ALTER TABLE docs ALTER COLUMN doc SET STORAGE EXTERNAL",
            "ALTER TABLE docs ALTER COLUMN raw SET STORAGE EXTERNAL",
            *inserts(0),
            f"INSERT INTO docs SELECT {TOASTED}, doc, doc::text::json, 'large' FROM"
            " (SELECT jsonb_agg(jsonb_build_object('n', g, 't', md5(g::text))) AS doc"
            " FROM generate_series(1, 200) g) made",
        )
        own = {"columns": COLUMNS, "expectations": [EXPECTATION]}
        return stack(TABLE, lake={**lake, "tables": {TABLE: own}})

    return make


def inserts(first: int) -> list[str]:
    texts = ("NULL" if text is None else f"'{text}'" for text in DOCUMENTS)
    return [
        f"INSERT INTO docs VALUES ({first + place}, {text}, {text}, 'note')"
        for place, text in enumerate(texts, 1)
    ]


def apply(made: Stack) -> Any:
    run_capture(made.pipeline, made.platform)
    (result,) = run_apply(made.spark, made.pipeline, made.platform, run="apply").tables
    assert result.error is None, result.error
    return result


def verify(made: Stack, **options: Any) -> TableVerdict:
    (table,) = run_verify(made.spark, made.pipeline, made.platform, **options).tables
    assert table.error is None, table.error
    return table


def value(text: str | None) -> Any:
    """Equal for documents that are equal as JSON values; NULL is not ``null``."""
    if text is None:
        return "NULL"
    return json.loads(text, parse_int=Decimal, parse_float=Decimal)


def lake(made: Stack, *more: str, where: str = "true") -> dict[int, list[Any]]:
    """By id: what Spark reads."""
    table = made.spark.table(spark_name(made.pipeline.targets[0])).where(where)
    found: dict[int, list[Any]] = {}
    for row in table.select("id", F.to_json("doc"), F.to_json("raw"), "note", *more).collect():
        found.setdefault(row[0], []).append((value(row[1]), value(row[2]), *row[3:]))
    return found


def source(made: Stack) -> dict[int, list[Any]]:
    rows = made.db.rows("SELECT id, doc::text, raw::text, note FROM docs")
    return {row[0]: [(value(row[1]), value(row[2]), row[3])] for row in rows}


def waiting(made: Stack) -> list[tuple[str, ...]]:
    found = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    assert {letter.code for letter in found} <= {"apply.cast_failed"}
    return sorted((*letter.key, letter.message.split()[0]) for letter in found)


def change(made: Stack) -> None:
    made.db.sql(
        *inserts(100),
        f"UPDATE docs SET note = 'the document was not sent' WHERE id = {TOASTED}",
        "UPDATE docs SET doc = doc || '{\"b\": 2}', raw = '[ 1 ]' WHERE id = 1",
        "DELETE FROM docs WHERE id = 4",
    )


def test_sweep_and_log_give_the_same_documents(docs: Callable[..., Stack]) -> None:
    made = docs(maintenance=EAGER)
    made.swept()
    assert lake(made) == source(made)
    before = lake(made)
    change(made)
    apply(made)
    assert lake(made) == source(made)
    assert all(lake(made)[100 + n] == before[n] for n in range(1, len(DOCUMENTS) + 1))
    made.db.sql(f"UPDATE docs SET id = 51, note = 'moved' WHERE id = {TOASTED}")
    apply(made)
    assert lake(made) == source(made)
    verdict = verify(made)
    assert (verdict.status, verdict.coverage) == ("equal", 100.0)
    made.db.sql('UPDATE docs SET doc = \'{"a": [{"b": "inside"}]}\' WHERE id = 2')
    assert verify(made, extent=extent("changed")).status == "equal"
    inside = made.spark.table(spark_name(made.pipeline.targets[0])).where(
        "variant_get(doc, '$.a[0].b', 'string') = 'inside'"
    )
    assert [row.id for row in inside.collect()] == [2]
    first = made.table(TABLE).metadata.current_snapshot_id
    assert first is not None
    # Columns come as ever, also with values for older rows.
    made.db.sql("ALTER TABLE docs ADD COLUMN extra int DEFAULT 7")
    made.db.sql("ALTER TABLE docs ADD COLUMN later jsonb DEFAULT '{\"d\": 1}'", *inserts(200))
    apply(made)
    table = made.spark.table(spark_name(made.pipeline.targets[0]))
    assert {row[0] for row in table.select(F.to_json("later")).collect()} == {'{"d":1}'}
    assert lake(made) == source(made)
    back = run_rollback(made.spark, made.pipeline, made.platform, TABLE, first)
    assert back.status == "rolled back"
    apply(made)
    result = run_maintain(made.spark, made.pipeline, made.platform, force=True).tables[0]
    assert (result.error, result.status) == (None, "maintained")
    assert result.work.compacted.rewritten_files > 1
    assert lake(made) == source(made)
    made.swept()
    assert lake(made) == source(made)
    assert verify(made).status == "equal"
    assert query(made.table(TABLE), where="id = 51").rows.to_pylist() == [
        {"id": 51, "note": "moved", "extra": 7}
    ]
    _duckdb_reads(made)


def _duckdb_reads(made: Stack) -> None:
    location = made.table(TABLE).metadata_location
    with duckdb_connection() as connection:
        rows = connection.execute(
            f"SELECT id, doc, raw, note FROM iceberg_scan('{location}')"
        ).fetchall()
    # NULL and `null` are one to DuckDB.
    wanted = {
        key: tuple(None if one == "NULL" else one for one in row)
        for key, (row,) in source(made).items()
    }
    assert {row[0]: row[1:] for row in rows} == wanted


INEXACT = (
    "INSERT INTO docs VALUES (60, '{\"n\": 1e40}', NULL, 'too many digits')",
    "INSERT INTO docs VALUES (61, NULL, '{\"n\": 1e2}', 'a float')",
    "INSERT INTO docs VALUES (62, NULL, '{\"a\": 1, \"a\": 2}', 'two values of one key')",
    r"""INSERT INTO docs VALUES (63, NULL, '["\ud800"]', 'half a character')""",
    "UPDATE docs SET raw = '[-0]' WHERE id = 1",
)
LETTERS = [("1", "raw"), ("60", "doc"), ("61", "raw"), ("62", "raw"), ("63", "raw")]


def test_what_a_variant_cannot_hold_is_a_dead_letter_on_both_paths(
    docs: Callable[..., Stack],
) -> None:
    made = docs()
    made.swept()
    before = lake(made)
    made.db.sql(*INEXACT)
    assert apply(made).parked == len(LETTERS)
    assert waiting(made) == LETTERS
    assert lake(made) == before
    assert made.swept().parked == len(LETTERS)
    assert waiting(made) == LETTERS
    assert lake(made) == {key: rows for key, rows in before.items() if key != 1}
    verdict = verify(made)
    assert (verdict.status, verdict.waiting) == ("equal", len(LETTERS))
    made.db.sql("UPDATE docs SET raw = '[100]' WHERE id IN (1, 61)")
    assert apply(made).parked == 2
    redriven = run_redrive(made.spark, made.pipeline, made.platform).tables[0]
    assert (redriven.applied, redriven.still_waiting) == (4, 3)
    wanted = source(made)
    assert [lake(made)[key] for key in (1, 61)] == [wanted[1], wanted[61]]


def test_a_document_that_is_too_large_to_be_taken_waits_without_it(
    docs: Callable[..., Stack],
) -> None:
    made = docs()
    small = made.platform.capture.model_copy(update={"max_value_bytes": 5000})
    made.platform = made.platform.model_copy(update={"capture": small})
    assert made.swept().parked == 1
    (letter,) = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    assert (letter.code, letter.key) == ("apply.value_too_large", (str(TOASTED),))
    wanted = source(made)
    assert lake(made) == {key: rows for key, rows in wanted.items() if key != TOASTED}
    verdict = verify(made)
    assert (verdict.status, verdict.waiting) == ("equal", 1)


def test_a_difference_inside_a_document_is_named_and_mended(docs: Callable[..., Stack]) -> None:
    made = docs()
    made.swept()
    name = spark_name(made.pipeline.targets[0])
    for statement in (
        """UPDATE {0} SET doc = parse_json('{{"b": 1.51, "a": [1]}}') WHERE id = 1""",
        "UPDATE {0} SET doc = NULL WHERE id = 2",
        """UPDATE {0} SET raw = parse_json('null') WHERE id = 3""",
        """UPDATE {0} SET doc = parse_json(to_json(doc)) WHERE id = 5""",
    ):
        made.spark.sql(statement.format(name))
    mended = verify(made, repair=True)
    assert (mended.status, mended.repaired) == ("repaired", 3)
    assert set(map(repr, mended.first)) == {
        repr(Difference("different", {"id": "1"}, ("doc",))),
        repr(Difference("different", {"id": "2"}, ("doc",))),
        repr(Difference("different", {"id": "3"}, ("raw",))),
    }
    assert lake(made) == source(made)


def test_every_change_is_a_row_with_its_whole_document(docs: Callable[..., Stack]) -> None:
    made = docs(write_mode="append")
    made.swept()
    before = source(made)
    change(made)
    made.db.sql(f"UPDATE docs SET note = 'and again' WHERE id = {TOASTED}")
    apply(made)
    made.db.sql(f"UPDATE docs SET id = 51 WHERE id = {TOASTED}")  # the lake has it thrice by now
    apply(made)
    found = lake(made, "_cdc_op", where="_cdc_op <> 'd'")
    assert sorted(row[-1] for row in found[TOASTED]) == ["r", "u", "u"]
    assert {repr(row[:2]) for row in found[TOASTED] + found[51]} == {repr(before[TOASTED][0][:2])}
    now = source(made)
    assert [key for key, rows in now.items() if rows[0] not in [r[:3] for r in found[key]]] == []
    assert verify(made).status == "equal"


def test_versions_have_their_documents_and_equal_ones_open_none(
    docs: Callable[..., Stack],
) -> None:
    made = docs(write_mode="history")
    made.swept()
    change(made)
    apply(made)
    current = "_cdc_current"
    assert lake(made, where=current) == source(made)
    assert [len(lake(made)[key]) for key in (1, 2, TOASTED)] == [2, 1, 2]
    # Another order and other spaces are the same document; another number is not.
    made.db.sql("UPDATE docs SET raw = '[ 1 , 2 ]' WHERE id = 2")
    apply(made)
    made.db.sql("UPDATE docs SET raw = '[1,2.0]' WHERE id = 2")
    made.db.sql("UPDATE docs SET raw = '[3]' WHERE id = 3")
    made.swept()
    assert [len(lake(made)[key]) for key in (2, 3)] == [2, 2]
    assert lake(made, where=current) == source(made)
    assert verify(made).status == "equal"


def test_deleted_rows_keep_their_documents(docs: Callable[..., Stack]) -> None:
    made = docs(soft_delete=True)
    made.swept()
    before = source(made)
    change(made)
    apply(made)
    made.db.sql(f"DELETE FROM docs WHERE id = {TOASTED}")
    made.swept()
    assert lake(made, where="NOT _cdc_deleted") == source(made)
    gone = lake(made, where="_cdc_deleted")
    assert gone[4] == before[4] and gone[TOASTED][0][:2] == before[TOASTED][0][:2]
    assert verify(made).status == "equal"


def test_what_cannot_be_is_said_before_anything_is_done(docs: Callable[..., Stack]) -> None:
    made = docs(format_version=2)
    findings = validate_pipeline(made.pipeline, made.platform).findings
    wrong = [one.message for one in findings if one.code == "config.column_override"]
    assert ["format_version 2" in message for message in wrong] == [True, True, False]
    assert "no such column" in wrong[2]
    (result,) = made.sweep().tables
    assert result.error is not None and "table.variant_format" in str(result.error)


def test_a_table_of_texts_is_held_when_they_are_to_be_variants(
    docs: Callable[..., Stack],
) -> None:
    made = docs()
    variant = made.pipeline
    sinks = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": {}}]
    made.pipeline = made.db.pipeline(TABLE, sinks=sinks)
    made.swept()
    made.pipeline = variant
    made.db.sql("DELETE FROM docs WHERE id = 1")
    run_capture(made.pipeline, made.platform)
    (held,) = run_apply(made.spark, made.pipeline, made.platform, run="apply").tables
    assert held.error is not None
    assert "the lake has string, the source now gives variant (jsonb)" in str(held.error)
    assert "table_name" in str(held.error)
