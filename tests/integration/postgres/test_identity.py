"""What identifies a row in the log, for every kind of replica identity (STACK.md)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.postgres import SourceDatabase
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog

pytestmark = pytest.mark.postgres

APPEND = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": {"write_mode": "append"}}]


def captured(pipeline: PipelineConfig, platform: PlatformConfig) -> list[dict[str, Any]]:
    run_capture(pipeline, platform)
    rows = ChangeLog(open_catalog(platform, pipeline), pipeline).table().scan().to_arrow()
    return sorted(rows.to_pylist(), key=lambda row: row["position"])


def test_full_identity_with_a_key_sends_the_whole_old_row(
    any_source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    db = any_source_db
    db.sql(
        "CREATE TABLE items (note text, id int PRIMARY KEY, big text)",
        "ALTER TABLE items ALTER big SET STORAGE EXTERNAL",
        "ALTER TABLE items REPLICA IDENTITY FULL",
    )
    pipeline = db.pipeline("public.items")
    deploy(pipeline, platform)
    big = "x" * 9000
    db.sql(
        f"INSERT INTO items VALUES ('a', 1, '{big}')",
        "UPDATE items SET note = 'b'",
        "UPDATE items SET id = 2",
        "DELETE FROM items",
    )
    inserted, updated, moved, deleted = captured(pipeline, platform)
    assert (inserted["key"], inserted["before"]) == (["1"], None)
    # The big value is not sent in the new row; the old one has it, so nothing is unchanged.
    assert updated["after"] == ["b", "1", big]
    assert updated["before"] == ["a", "1", big]
    assert not updated["unchanged"]
    assert (moved["key"], moved["after"]) == (["1"], ["b", "2", big])
    assert (deleted["key"], deleted["before"], deleted["after"]) == (["2"], ["b", "2", big], None)


def test_full_identity_without_a_key_has_empty_keys(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql("CREATE TABLE items (a int, b text)", "ALTER TABLE items REPLICA IDENTITY FULL")
    pipeline = source_db.pipeline("public.items", sinks=APPEND)
    deploy(pipeline, platform)
    source_db.sql("INSERT INTO items VALUES (1, NULL), (1, NULL)", "DELETE FROM items")
    rows = captured(pipeline, platform)
    assert [(row["op"], row["key"], row["before"]) for row in rows] == [
        ("c", [], None),
        ("c", [], None),
        ("d", [], ["1", None]),
        ("d", [], ["1", None]),
    ]


def test_identity_index_names_rows_in_its_own_column_order(
    any_source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    db = any_source_db
    db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, a int NOT NULL, b text NOT NULL)",
        "CREATE UNIQUE INDEX other ON items (b, a)",
        "ALTER TABLE items REPLICA IDENTITY USING INDEX other",
    )
    pipeline = db.pipeline("public.items")
    deploy(pipeline, platform)
    db.sql(
        "INSERT INTO items VALUES (1, 10, 'x')",
        "UPDATE items SET id = 2",  # the primary key changes, the identity does not
        "UPDATE items SET a = 11",
        "DELETE FROM items",
    )
    rows = captured(pipeline, platform)
    assert [(row["op"], row["key"], row["after"]) for row in rows] == [
        ("c", ["x", "10"], ["1", "10", "x"]),
        ("u", ["x", "10"], ["2", "10", "x"]),
        ("u", ["x", "10"], ["2", "11", "x"]),
        ("d", ["x", "11"], None),
    ]


def test_a_key_that_is_stored_out_of_line_is_known_in_both_rows(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql(
        "CREATE TABLE items (key text, note text)",
        "ALTER TABLE items ALTER key SET STORAGE EXTERNAL, ALTER key SET NOT NULL",
        "ALTER TABLE items REPLICA IDENTITY FULL",
    )
    pipeline = source_db.pipeline("public.items", sinks=APPEND)
    deploy(pipeline, platform)
    source_db.sql(
        "INSERT INTO items VALUES (repeat('k', 5000), 'a')", "UPDATE items SET note = 'b'"
    )
    _, updated = captured(pipeline, platform)
    assert updated["after"] == ["k" * 5000, "b"]


def test_partitions_speak_as_their_root(
    any_source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    db = any_source_db
    db.sql(
        "CREATE TABLE items (id int PRIMARY KEY, note text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (100)",
        # Another order of columns, as partitions that were attached have.
        "CREATE TABLE high (note text, id int PRIMARY KEY)",
        "ALTER TABLE items ATTACH PARTITION high FOR VALUES FROM (100) TO (200)",
    )
    pipeline = db.pipeline("public.items")
    deploy(pipeline, platform)
    db.sql(
        "INSERT INTO items VALUES (1, 'a'), (101, 'b')",
        "UPDATE items SET id = 102 WHERE id = 1",  # moves between partitions
        "TRUNCATE items",
    )
    rows = captured(pipeline, platform)
    assert {row["table"] for row in rows} == {"public.items"}
    assert [(row["op"], row["key"], row["after"]) for row in rows] == [
        ("c", ["1"], ["1", "a"]),
        ("c", ["101"], ["101", "b"]),
        ("d", ["1"], None),
        ("c", ["102"], ["102", "a"]),
        ("t", None, None),
    ]


def test_names_with_dots_quotes_and_capitals_survive(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql(
        'CREATE SCHEMA "My.Schema"',
        'CREATE TABLE "My.Schema"."odd ""name" ("Key.1" int PRIMARY KEY, "select" text)',
    )
    name = '"My.Schema"."odd ""name"'
    pipeline = source_db.pipeline(name)
    deploy(pipeline, platform)
    source_db.sql(f"INSERT INTO {name} VALUES (1, 'x')")
    (row,) = captured(pipeline, platform)
    assert row["table"] == str(pipeline.source.table_ids[0])
    assert row["after"] == ["1", "x"]


def test_a_round_of_identities_leaves_the_key_what_it_was(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    """Captured when the catalog has moved on to another identity."""
    db = source_db
    db.sql(
        "CREATE TABLE items (id int, a int NOT NULL, v int, PRIMARY KEY (a, id))",
        "CREATE UNIQUE INDEX same ON items (id, a)",
        "CREATE UNIQUE INDEX other ON items (a)",
    )
    pipeline = db.pipeline("public.items", ddl_messages="off")
    deploy(pipeline, platform)
    rows = [*captured(pipeline, platform)]
    for identity, later in (
        ("FULL", "USING INDEX other"),
        ("USING INDEX same", "FULL"),
        ("DEFAULT", "USING INDEX same"),
    ):
        db.sql(
            f"ALTER TABLE items REPLICA IDENTITY {identity}",
            "INSERT INTO items VALUES (1, 2, 3)",
            "UPDATE items SET v = 4",
            "DELETE FROM items",
            f"ALTER TABLE items REPLICA IDENTITY {later}",
        )
        rows = captured(pipeline, platform)
    assert [row["key"] for row in rows] == [["2", "1"]] * 9
