"""Tables without a primary key in ``upsert``: swept, applied, verified and kept from harm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate import faults
from tidegate.config.platform import CaptureConfig
from tidegate.config.verify import Extent
from tidegate.control.schema_approval import Answer, approve
from tidegate.errors import ConfigError
from tidegate.jobs.apply import Status, run_apply
from tidegate.jobs.apply_result import TableResult
from tidegate.jobs.capture import run_capture
from tidegate.jobs.reload import run_reload
from tidegate.jobs.verdict import TableVerdict
from tidegate.jobs.verify import run_verify
from tidegate.spark.publish import spark_name

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

TABLE = "public.events"
FULL = "ALTER TABLE events REPLICA IDENTITY FULL"
ONE = "ctid = (SELECT min(ctid) FROM events WHERE {0})"


def catch_up(made: Stack) -> TableResult:
    run_capture(made.pipeline, made.platform)
    return run_apply(made.spark, made.pipeline, made.platform, run="apply").tables[0]


def verdict(made: Stack, **how: Any) -> TableVerdict:
    (table,) = run_verify(made.spark, made.pipeline, made.platform, **how).tables
    return table


def counted(found: TableVerdict) -> tuple[str, int, int, int, int]:
    return found.status, found.source_rows, found.lake_rows, found.missing, found.extra


@pytest.mark.parametrize(
    ("kind", "version"), [("text", 2), ("jsonb", 3)], ids=["sums-format-2", "variants-format-3"]
)
def test_source_and_lake_have_every_row_as_often(
    source_db: SourceDatabase, stack: Callable[..., Stack], kind: str, version: int
) -> None:
    """Once by sums alone, once row by row (lists and documents have no sum)."""
    source_db.sql(
        f"CREATE TABLE events (at timestamptz, n int, note {kind}, tags timestamp[])",
        FULL,
        "ALTER TABLE events ALTER note SET STORAGE EXTERNAL",
        *(["ALTER TABLE events DROP COLUMN tags"] if version == 2 else []),
        "INSERT INTO events (at, n, note) SELECT timestamptz '2024-01-01Z' + g % 50 * interval"
        f" '1 us', g % 7, to_json(repeat('x', 3000 + g % 3))::text::{kind}"
        " FROM generate_series(1, 1200) g",
        "INSERT INTO events SELECT NULL FROM generate_series(1, 5)",
    )
    columns = {"note": {"type": "variant"}} if version == 3 else {}
    reload = {"time_column": "at"}
    made = stack(
        TABLE,
        lake={
            "format_version": version,
            "tables": {TABLE: {"columns": columns, "reload": reload}},
        },
    )
    assert made.swept().rows == 1205
    source_db.sql(
        f"DELETE FROM events WHERE {ONE.format('n IS NULL')}",
        "UPDATE events SET n = 3 WHERE n < 3",
        f"UPDATE events SET at = NULL, note = NULL, n = NULL WHERE {ONE.format('n = 3')}",
        "DELETE FROM events WHERE n = 6; INSERT INTO events (n) VALUES (6), (6)",
    )
    if version == 3:
        source_db.sql("UPDATE events SET tags = ARRAY[at::timestamp, NULL] WHERE n = 4")
    assert catch_up(made).error is None
    rows = source_db.value("SELECT count(*) FROM events")
    found = verdict(made, extent=Extent(0.01))
    assert (counted(found), found.coverage) == (("equal", rows, rows, 0, 0), 100.0)

    name = spark_name(made.pipeline.targets[0])
    one = f"(SELECT min(_pos) FROM {name} WHERE n = 6 AND note IS NULL)"
    made.spark.sql(f"DELETE FROM {name} WHERE n = 6 AND note IS NULL AND _pos = {one}")
    made.spark.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE n IS NULL LIMIT 2")
    left = made.spark.table(name).count()
    missing = rows + 2 - left
    assert missing in (1, 2)
    found = verdict(made, repair=True)
    assert counted(found) == ("different", rows, left, missing, 2)
    assert found.error is not None and found.error.code == "repair.needs_sweep"
    assert (found.first, found.coverage) == ((), 0.0), "a row has no name but its values"
    day = {"start": datetime(2024, 1, 1, tzinfo=UTC), "end": datetime(2024, 1, 2, tzinfo=UTC)}
    (refused,) = run_reload(made.spark, made.pipeline, made.platform, **day).tables
    assert refused.error is not None and refused.error.code == "repair.needs_sweep"
    with pytest.raises(ConfigError, match="without a key there is no range"):
        made.sweep(TABLE, where="n >= 1 and n < 3")
    made.swept()
    assert counted(verdict(made)) == ("equal", rows, rows, 0, 0)


def test_a_killed_sweep_begins_anew(
    source_db: SourceDatabase, stack: Callable[..., Stack], fault: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Its chunks are places in a file, which mean other rows at another cut."""
    source_db.sql("CREATE TABLE events (n int)", FULL)
    source_db.sql("INSERT INTO events SELECT g % 3 FROM generate_series(1, 2500) g")
    made = stack(TABLE)
    fault("sweep.after_chunk")
    with pytest.raises(faults.Fault):
        made.sweep(TABLE, run="killed")
    monkeypatch.delenv("TIDEGATE_FAULT")
    source_db.sql("UPDATE events SET n = n + 1", "DELETE FROM events WHERE n = 3")
    made.swept(TABLE, run="killed")
    source_db.sql(f"DELETE FROM events WHERE {ONE.format('n = 2')}")
    assert catch_up(made).error is None
    rows = source_db.value("SELECT count(*) FROM events")
    assert counted(verdict(made)) == ("equal", rows, rows, 0, 0)


def test_an_old_row_too_large_to_be_taken_is_no_other_row(
    source_db: SourceDatabase, stack: Callable[..., Stack]
) -> None:
    """It comes without the value; a row that has NULL there must not go in its place."""
    source_db.sql("CREATE TABLE events (n int, v text)", FULL)
    source_db.sql("INSERT INTO events VALUES (1, NULL), (1, repeat('x', 70000))")
    made = stack(TABLE)
    made.swept()
    small = CaptureConfig(max_value_bytes=64 * 1024)
    made.platform = made.platform.model_copy(update={"capture": small})
    source_db.sql("UPDATE events SET v = 'small' WHERE v IS NOT NULL")
    result = catch_up(made)
    assert result.status is Status.HELD and result.error is not None
    assert result.error.code == "apply.old_row_unknown"
    assert len(made.lake(TABLE)) == 2
    made.swept()
    assert made.lake(TABLE) == [(1, "small"), (1, None)]


def test_a_key_that_comes_or_goes_needs_an_approval_and_a_sweep(
    source_db: SourceDatabase, stack: Callable[..., Stack]
) -> None:
    source_db.sql("CREATE TABLE events (n int PRIMARY KEY, v text)", FULL)
    source_db.sql("INSERT INTO events VALUES (1, 'a'), (2, 'a')")
    made = stack(TABLE)
    made.swept()

    def followed(ddl: str, *then: str) -> None:
        source_db.sql(ddl, "INSERT INTO events VALUES (9, 'a')")
        result = catch_up(made)
        assert result.status is Status.HELD and result.error is not None
        assert result.error.code == "apply.schema_incompatible", result.error
        approve(made.pipeline, made.platform, TABLE, Answer(), actor="a person")
        assert catch_up(made).status is not Status.APPLIED, "older rows are under the old key"
        made.swept()
        source_db.sql(*then)
        assert catch_up(made).error is None
        assert verdict(made).equal

    followed(
        "ALTER TABLE events DROP CONSTRAINT events_pkey, ALTER n DROP NOT NULL",
        "INSERT INTO events VALUES (9, 'a'), (NULL, 'a')",
        f"DELETE FROM events WHERE {ONE.format('n = 9')}",
    )
    assert made.lake(TABLE, "n") == [(1,), (2,), (9,), (None,)]
    assert not made.table(TABLE).schema().identifier_field_names()
    source_db.sql("DELETE FROM events WHERE n IS NULL OR n = 9")
    assert catch_up(made).error is None
    followed("ALTER TABLE events ADD PRIMARY KEY (n)", "UPDATE events SET v = 'b' WHERE n = 9")
    assert made.lake(TABLE) == [(1, "a"), (2, "a"), (9, "b")]
