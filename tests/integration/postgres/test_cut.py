"""The cut is exact, bounded and leaves nothing behind (DESIGN §7.2, I11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.postgres import SourceDatabase
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.postgres.connection import connect_replication
from tidegate.connectors.postgres.position import epoch_of
from tidegate.connectors.postgres.replication import identify
from tidegate.connectors.postgres.sweep import open_cut
from tidegate.errors import FatalError, HeldError, SetupError
from tidegate.names import TableId

pytestmark = pytest.mark.postgres

ITEMS = TableId("public", "items")


def _epoch(db: SourceDatabase) -> str:
    connection = connect_replication(db.settings(), "test")
    try:
        return epoch_of(identify(connection).identifier, 1)
    finally:
        connection.close()


def _quick(**sweep: float) -> PlatformConfig:
    return PlatformConfig.model_validate({"sweep": sweep})


def test_snapshot_holds_exactly_what_committed_before_the_cut(
    any_source_db: SourceDatabase,
) -> None:
    db = any_source_db
    db.sql("CREATE TABLE items (id int PRIMARY KEY)", "INSERT INTO items VALUES (1), (2)")
    with open_cut(db.settings("public.items"), (ITEMS,), _epoch(db)) as cut:
        db.sql("INSERT INTO items VALUES (3)")
        assert cut.count(ITEMS) == 2
        with db.connect() as reader, reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute(f"SET TRANSACTION SNAPSHOT '{cut.snapshot_name}'")
            assert reader.execute("SELECT count(*) FROM items").fetchone() == (2,)
        assert cut.position.lsn > 0
        cut.check()


def test_what_fails_for_one_table_leaves_the_cut_to_the_others(source_db: SourceDatabase) -> None:
    other = TableId("public", "others")
    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY)",
        "CREATE TABLE others (id int PRIMARY KEY)",
        "INSERT INTO others VALUES (1)",
    )
    settings = source_db.settings("public.items", "public.others")
    with open_cut(settings, (ITEMS, other), _epoch(source_db)) as cut:
        schema = cut.schema(ITEMS)
        with pytest.raises(SetupError, match="does not exist"):
            cut.survey(ITEMS, schema, "no_such_column = 1")
        with pytest.raises(SetupError, match="100 arguments") as refused:
            cut.survey(ITEMS, schema, f"concat({', '.join('1' * 101)}) = '1'")
        assert refused.value.code == "source.sql"  # the server was there
        assert cut.count(other) == 1
        cut.check()


def test_cut_keeps_no_slot_while_it_is_read(source_db: SourceDatabase) -> None:
    source_db.sql("CREATE TABLE items (id int PRIMARY KEY)")
    with open_cut(source_db.settings("public.items"), (ITEMS,), _epoch(source_db)):
        slots = source_db.value("SELECT count(*) FROM pg_replication_slots WHERE temporary")
        assert slots == 0


def test_truncate_waits_for_the_cut(source_db: SourceDatabase) -> None:
    import psycopg

    source_db.sql("CREATE TABLE items (id int PRIMARY KEY)", "INSERT INTO items VALUES (1)")
    with open_cut(source_db.settings("public.items"), (ITEMS,), _epoch(source_db)) as cut:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            source_db.sql("SET lock_timeout = '200ms'", "TRUNCATE items")
        assert cut.count(ITEMS) == 1
    source_db.sql("TRUNCATE items")


def test_open_transaction_holds_the_cut_back_and_is_named(source_db: SourceDatabase) -> None:
    source_db.sql("CREATE TABLE items (id int PRIMARY KEY)")
    epoch = _epoch(source_db)
    settings = source_db.settings("public.items", platform=_quick(cut_timeout_seconds=0.5))
    with source_db.connect() as writer:
        writer.execute("BEGIN")
        writer.execute("INSERT INTO items VALUES (1)")
        with (
            pytest.raises(HeldError, match=f"pid {writer.info.backend_pid}") as held,
            open_cut(settings, (ITEMS,), epoch),
        ):
            pass
        assert held.value.code == "sweep.cut_held_back"
        writer.execute("COMMIT")
    with open_cut(source_db.settings("public.items"), (ITEMS,), epoch) as cut:
        assert cut.count(ITEMS) == 1


def test_locked_table_is_given_up_in_time(source_db: SourceDatabase) -> None:
    source_db.sql("CREATE TABLE items (id int PRIMARY KEY)")
    settings = source_db.settings("public.items", platform=_quick(lock_timeout_seconds=0.2))
    with source_db.connect() as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE items IN ACCESS EXCLUSIVE MODE")
        with (
            pytest.raises(HeldError) as held,
            open_cut(settings, (ITEMS,), _epoch(source_db)),
        ):
            pass
        assert held.value.code == "source.locked"


def test_another_cluster_is_refused(source_db: SourceDatabase) -> None:
    source_db.sql("CREATE TABLE items (id int PRIMARY KEY)")
    settings = source_db.settings("public.items")
    with (
        pytest.raises(FatalError, match=r"public\.items") as refused,
        open_cut(settings, (ITEMS,), epoch_of("123", 1)),
    ):
        pass
    assert refused.value.code == "source.other_system"


@pytest.mark.parametrize("by_key", [True, False])
@pytest.mark.parametrize(
    "ddl",
    [
        "CREATE TABLE items (id int PRIMARY KEY, pad text)",
        "CREATE TABLE items (id int, pad text, PRIMARY KEY (pad, id))",
        "CREATE TABLE items (id int PRIMARY KEY, pad text) PARTITION BY RANGE (id)",
    ],
)
def test_chunks_cover_every_row_once(source_db: SourceDatabase, ddl: str, by_key: bool) -> None:
    source_db.sql(ddl)
    if "PARTITION" in ddl:
        source_db.sql(
            "CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (3000)",
            "CREATE TABLE high PARTITION OF items DEFAULT",
        )
    source_db.sql(
        "INSERT INTO items SELECT g, 'it''s \\ ' || g % 7 FROM generate_series(1, 10000) g",
        "ANALYZE items",
    )
    with open_cut(source_db.settings("public.items"), (ITEMS,), _epoch(source_db)) as cut:
        schema = cut.schema(ITEMS)
        chunks = cut.chunks(ITEMS, schema, 2000, by_key=by_key)
        assert len(chunks) >= 4
        for form in ("chunk", "text"):
            found = [
                row[0] if schema.columns[0].name == "id" else row[1]
                for chunk in chunks
                for row in source_db.rows(
                    cut.select_sql(ITEMS, schema, chunk if form == "chunk" else chunk.predicate_sql)
                )
            ]
            assert sorted(found) == list(range(1, 10001))
        if by_key:
            assert chunks[0].lower is None
            assert chunks[-1].upper is None
            middle = chunks[1].upper
            rest = cut.chunks(ITEMS, schema, 2000, by_key=True, after=middle)
            assert rest[0].lower == middle
            left = sum(len(source_db.rows(cut.select_sql(ITEMS, schema, chunk))) for chunk in rest)
            done = sum(len(source_db.rows(cut.select_sql(ITEMS, schema, c))) for c in chunks[:2])
            assert done + left == 10000


def test_rows_written_since_a_mark_are_told_by_their_versions(
    any_source_db: SourceDatabase,
) -> None:
    db = any_source_db
    db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, note text)",
        "INSERT INTO items SELECT g, 'old' FROM generate_series(1, 100) g",
        "UPDATE items SET note = 'before' WHERE id <= 10",
    )
    settings, epoch = db.settings("public.items"), _epoch(db)
    with open_cut(settings, (ITEMS,), epoch) as cut:
        mark = cut.mark(ITEMS, cut.schema(ITEMS))
    assert mark is not None
    db.sql(
        "BEGIN; UPDATE items SET note = 'undone' WHERE id > 50; ROLLBACK",
        "SELECT * FROM items WHERE id = 70 FOR UPDATE",
        "DELETE FROM items WHERE id IN (1, 2)",
    )
    with db.connect() as connection:
        connection.execute("VACUUM (FREEZE) items")
    with open_cut(settings, (ITEMS,), epoch) as cut:
        known = cut.changed(ITEMS, cut.schema(ITEMS), mark)
        assert known is not None and (known.rows, known.changed) == (98, 0)
        other = replace(mark, line="another timeline")
        assert cut.changed(ITEMS, cut.schema(ITEMS), other) is None
        assert cut.changed(ITEMS, cut.schema(ITEMS), replace(mark, version=2**40)) is None
    db.sql(
        "UPDATE items SET note = note WHERE id = 5",
        "BEGIN; SAVEPOINT a; INSERT INTO items VALUES (200, 'sub'); RELEASE a; COMMIT",
    )
    with open_cut(settings, (ITEMS,), epoch) as cut:
        known = cut.changed(ITEMS, cut.schema(ITEMS), mark)
        assert known is not None and (known.rows, known.changed) == (99, 2)
        sql = cut.select_sql(ITEMS, cut.schema(ITEMS), known.predicate)
        assert sorted(row[0] for row in _rows(db, sql)) == [5, 200]
    db.sql("ALTER TABLE items ALTER note TYPE varchar")  # rewrites nothing
    with open_cut(settings, (ITEMS,), epoch) as cut:
        assert cut.changed(ITEMS, cut.schema(ITEMS), mark) is None


def test_a_partitioned_table_has_no_mark(source_db: SourceDatabase) -> None:
    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE items_1 PARTITION OF items FOR VALUES FROM (0) TO (10)",
    )
    with open_cut(source_db.settings("public.items"), (ITEMS,), _epoch(source_db)) as cut:
        assert cut.mark(ITEMS, cut.schema(ITEMS)) is None


def _rows(db: SourceDatabase, sql: str) -> list[tuple[int, str]]:
    with db.connect() as connection:
        return list(connection.execute(sql).fetchall())


def test_the_survey_tells_which_columns_need_no_text(source_db: SourceDatabase) -> None:
    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, day date, late date, n int[], two int[],"
        ' shifted text[], words varchar(9)[], moods text[], nothing bigint[], "it\'s" int[],'
        " sums numeric(9,2)[])",
        "INSERT INTO items VALUES"
        " (1, '2024-02-29', 'infinity', '{1,NULL}', '{{1},{2}}', '[0:1]={a,b}', '{a}', '{}', NULL,"
        "  '{1}', '{1}'),"
        " (2, NULL, NULL, '{}', '{1}', '{a}', NULL, '{NULL}', NULL, '{1}', '{1}')",
    )
    settings = source_db.settings("public.items")
    with open_cut(settings, (ITEMS,), _epoch(source_db)) as cut:
        found = cut.survey(ITEMS, cut.schema(ITEMS))
    assert found.plain == {"day", "n", "words", "moods", "nothing"}


def test_an_array_that_is_too_large_is_measured_by_its_text(source_db: SourceDatabase) -> None:
    """Arrays of NULLs are small until they are printed."""
    source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, n int[], v text)",
        "ALTER TABLE items ALTER n SET STORAGE EXTERNAL",
        "INSERT INTO items VALUES (1, array_fill(NULL::int, ARRAY[90000]), 'short'),"
        " (2, '{1}', repeat('ab', 200000)), (3, NULL, NULL)",
    )
    settings = source_db.settings("public.items").model_copy(update={"max_value_bytes": 400_000})
    with open_cut(settings, (ITEMS,), _epoch(source_db)) as cut:
        found = cut.survey(ITEMS, cut.schema(ITEMS))
    assert dict(found.too_large) == {"n": 1}
    assert found.plain == frozenset()
