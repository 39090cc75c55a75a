"""What a sweep's dead letter keeps of a row is what the log would have sent (I6, I7)."""

from __future__ import annotations

import pytest

from tests.support.postgres import SourceDatabase
from tidegate.config.platform import CaptureConfig, PlatformConfig
from tidegate.connectors.cut import lost_flag
from tidegate.connectors.postgres.cut import PostgresCut
from tidegate.connectors.postgres.position import epoch_of
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.postgres.sweep import open_cut
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.names import TableId

pytestmark = pytest.mark.postgres

THINGS = TableId("public", "things")
ODD = r"""
INSERT INTO things VALUES
  (1, 't', 'ab', '10.0.0.1/8', '-infinity', '0044-03-15 BC', '2024-03-31 02:30:00.5+01',
   'NaN', 1.10, -0.0, 1e-7, '\x00ff', '{"a": [1, null]}', '{"x y",NULL,"\""}', '[2:3]={1,2}',
   '1 day 02:03:04.5', 12.5, 'b', '("a b",2)', E'tab\t ~ é😀', B'0101', '24:00:00', '{[1,5)}')
"""
TYPES = """
CREATE TYPE mood AS ENUM ('a', 'b');
CREATE TYPE pair AS (name text, n int);
CREATE TABLE things (
  id bigint PRIMARY KEY, ok boolean, code char(5), addr inet, day date, at timestamp,
  instant timestamptz, amount numeric(38,10), free numeric, ratio double precision, near real,
  raw bytea, body jsonb, names text[], bounds int[], span interval, price money, feeling mood,
  both_ pair, note text, bits bit(4), at_time time, ranges int4multirange)
"""


def test_every_type_has_the_text_of_the_log(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    source_db.sql(*TYPES.split(";"))
    pipeline = source_db.pipeline(str(THINGS))
    deploy(pipeline, platform)
    source_db.sql(ODD, "INSERT INTO things (id) VALUES (2)")
    run_capture(pipeline, platform)
    log = ChangeLog(open_catalog(platform, pipeline), pipeline)
    rows = log.table().scan().to_arrow().to_pylist()
    sent = {row["key"][0]: row["after"] for row in rows}
    settings = PostgresSettings.of(pipeline, platform, None)
    epoch = log.head().captured_through.epoch
    with open_cut(settings, (THINGS,), epoch) as cut:
        found = texts(cut)
    assert {row[0]: list(row) for row in found} == sent
    assert sent["1"][5] == "0044-03-15 00:00:00 BC"


def test_values_that_are_too_large_are_left_out_and_named(source_db: SourceDatabase) -> None:
    source_db.sql(
        "CREATE TABLE things (id int PRIMARY KEY, v text, b bytea)",
        "INSERT INTO things VALUES (1, 'v', 'b'), (2, repeat('x', 70000), NULL), (3, NULL,"
        " (SELECT decode(string_agg(md5(i::text), ''), 'hex') FROM generate_series(1, 3000) i))",
    )
    small = PlatformConfig(capture=CaptureConfig(max_value_bytes=64 * 1024))
    settings = source_db.settings(str(THINGS), platform=small)
    with open_cut(settings, (THINGS,), epoch_of(system(source_db), 1)) as cut:
        survey = cut.survey(THINGS, cut.schema(THINGS))
        assert (survey.rows, dict(survey.too_large)) == (3, {"v": 1, "b": 1})
        assert cut.survey(THINGS, cut.schema(THINGS), "id < 2").too_large == {}
        assert cut.span(THINGS, cut.schema(THINGS).columns[0]) == (1, 3)
        found = texts(cut, *survey.too_large)
        read = cut.select_sql(THINGS, cut.schema(THINGS), too_large=survey.too_large)
        sizes = [len(row[1] or b"") for row in cut._holder.execute(read.encode()).fetchall()]
    assert sorted(found) == [
        ("1", "v", r"\x62", False, False),
        ("2", None, None, True, False),
        ("3", None, None, False, True),
    ]
    assert max(sizes) < 100, "something small stands for it"
    assert lost_flag(2) == "_cdc_lost2"


def texts(cut: PostgresCut, *too_large: str) -> list[tuple[object, ...]]:
    sql = cut.text_sql(THINGS, cut.schema(THINGS), too_large=too_large)
    rows: list[tuple[object, ...]] = cut._holder.execute(sql.encode()).fetchall()
    return rows


def system(db: SourceDatabase) -> str:
    return str(db.value("SELECT system_identifier FROM pg_control_system()"))
