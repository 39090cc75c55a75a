"""The catalog's traces of changes that send no rows, on real servers."""

from __future__ import annotations

import pytest

from tests.support.postgres import SourceDatabase
from tidegate.config.schema_changes import SchemaChanges
from tidegate.connectors.postgres.connection import session
from tidegate.connectors.postgres.table_facts import look, table_facts
from tidegate.lake.unsent import told
from tidegate.names import TableId
from tidegate.schema.table_facts import TableFacts

pytestmark = pytest.mark.postgres

T, P = TableId("public", "t"), TableId("public", "p")


def seen(db: SourceDatabase, table: TableId = T) -> TableFacts:
    with session(db.settings(str(table)), "testing") as connection:
        return look(connection, (table,))[table]


def test_defaults_of_old_rows_are_told_as_the_log_would_print_them(
    any_source_db: SourceDatabase,
) -> None:
    db = any_source_db
    db.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    before = seen(db)
    db.sql(
        "ALTER TABLE t ADD a int DEFAULT 7, ADD b text DEFAULT 'x, \"y\" \\', ADD c numeric(5,2)"
        " DEFAULT 1.5, ADD d int[] DEFAULT '{1,2}', ADD e boolean DEFAULT true, ADD f text DEFAULT"
        " '', ADD g text DEFAULT 'NULL', ADD h bytea DEFAULT '\\x00ff', ADD i box DEFAULT"
        " '((1,1),(0,0))', ADD j int",
        "ALTER TABLE t ADD k timestamptz DEFAULT '2024-02-29 12:00+02'",
    )
    after = seen(db)
    (leaf,) = after.leaves.values()
    assert {after.columns[number]: text for number, text in leaf.missing.items()} == {
        "a": "7",
        "b": 'x, "y" \\',
        "c": "1.50",
        "d": "{1,2}",
        "e": "t",
        "f": "",
        "g": "NULL",
        "h": "\\x00ff",
        "i": None,  # its array has another separator: there is a value, and it is not guessed
        "k": "2024-02-29 10:00:00+00",
    }
    (old,) = before.leaves.values()
    assert leaf.file == old.file  # nothing was rewritten
    db.sql("ALTER TABLE t ADD l double precision DEFAULT random()")
    (rewritten,) = seen(db).leaves.values()
    assert rewritten.file != leaf.file
    assert not rewritten.missing  # a rewrite takes the traces with it


def test_partitions_made_as_such_came_empty_and_attached_ones_did_not(
    any_source_db: SourceDatabase,
) -> None:
    db = any_source_db
    db.sql(
        "CREATE TABLE p (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE p2 (id int PRIMARY KEY, v int)",
        "INSERT INTO p2 VALUES (11, 1)",
        "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)",
        "BEGIN; CREATE TABLE p3 (id int PRIMARY KEY, v int); INSERT INTO p3 VALUES (21, 1);"
        " ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30); COMMIT",
        "BEGIN; CREATE TABLE p4 PARTITION OF p FOR VALUES FROM (30) TO (40)"
        " PARTITION BY RANGE (id); CREATE TABLE p41 PARTITION OF p4 FOR VALUES FROM (30) TO (35);"
        " INSERT INTO p VALUES (31, 1); COMMIT",
        "CREATE TABLE p5 PARTITION OF p FOR VALUES FROM (50) TO (60)",
        "ALTER TABLE p DETACH PARTITION p5",
        "ALTER TABLE p ATTACH PARTITION p5 FOR VALUES FROM (50) TO (60)",
    )
    facts = seen(db, P)
    assert facts.partitioned
    assert {leaf.name: leaf.made_empty for leaf in facts.leaves.values()} == {
        "public.p1": True,
        "public.p2": False,
        "public.p3": False,
        "public.p41": True,
        "public.p5": False,
    }
    db.sql("ALTER TABLE p ADD w int DEFAULT 5", "ALTER TABLE p DETACH PARTITION p1")
    later = seen(db, P)
    number = later.number_of("w")
    assert {leaf.missing[number] for leaf in later.leaves.values()} == {"5"}
    (words,) = told(facts, later, SchemaChanges())
    assert "public.p1 is gone" in words


def test_enum_values_tables_made_anew_and_tables_that_moved(source_db: SourceDatabase) -> None:
    db = source_db
    db.sql(
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE TABLE t (id int PRIMARY KEY, v mood[])",
    )
    first = seen(db)
    db.sql("ALTER TYPE mood ADD VALUE 'new'")
    assert not list(told(first, seen(db), SchemaChanges()))
    db.sql("ALTER TYPE mood RENAME VALUE 'bad' TO 'sad'")
    (words,) = told(first, seen(db), SchemaChanges())
    assert "mood.bad is called mood.sad" in words
    db.sql("ALTER TABLE t RENAME TO elsewhere")
    with session(db.settings("public.t"), "testing") as connection:
        moved = table_facts(connection, T, first.relation)
    assert (moved.relation, moved.name_now) == (None, "public.elsewhere")
    db.sql("CREATE TABLE t (id int PRIMARY KEY, v mood[])")
    (words,) = told(first, seen(db), SchemaChanges())
    assert "made anew" in words
