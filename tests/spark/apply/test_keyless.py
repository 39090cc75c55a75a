"""Tables without a key in ``upsert``: each change takes exactly one of equal rows away."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, StringType, TimestampNTZType

from tests.spark.apply.lake_lab import LakeLab, check_upsert
from tests.support.changes import BIG, ModelTable, money, number, schema, text
from tidegate import faults
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import TableOptions, WriteMode
from tidegate.errors import ConfigError, TidegateError
from tidegate.jobs.apply import Status
from tidegate.jobs.set_offset import run_set_offset
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import GateState
from tidegate.lake.reposition import replayable_from
from tidegate.schema.table import Column
from tidegate.schema.types import Kind, LogicalType, TextRule
from tidegate.spark.digest import row_digest
from tidegate.spark.row_identity import row_identity, value_text

pytestmark = pytest.mark.spark
ROWS = "public.rows"
COLUMNS = (number("n"), text("note"), money("price"))
DOUBLE = Column("d", "double precision", LogicalType(Kind.DOUBLE), TextRule.PG_NUMBER)


@pytest.fixture
def lab(spark: SparkSession, spark_platform: PlatformConfig) -> LakeLab:
    return made(spark, spark_platform)


def made(spark: SparkSession, platform: PlatformConfig, **lake: object) -> LakeLab:
    lab = LakeLab(spark, platform, {ROWS: TableOptions()}, **lake)
    lab.add(schema(ROWS, *COLUMNS), full=True)
    return lab


def flow(lab: LakeLab) -> None:
    """Everything so far, in one batch, is in the lake."""
    for model in lab.tables.values():
        model.commit()
    captured = lab.capture()
    result = lab.apply().tables[0]
    assert (result.status, result.error) == (Status.APPLIED, None)
    assert lab.position(lab.tables[ROWS]) == captured


def change(model: ModelTable, rng: random.Random) -> None:
    """Few values, so that rows are often equal; some of them TOASTed, many of them NULL."""
    values = {
        "n": rng.choice(["1", "2", None]),
        "note": rng.choice([None, "", BIG + "x", BIG + "y"]),
        "price": rng.choice([None, "1.00", "-0.50"]),
    }
    kind = rng.choices(["insert", "again", "update", "delete", "truncate"], [30, 15, 40, 20, 1])[0]
    if kind == "truncate":
        model.truncate()
    elif kind == "again" and model.rows:
        model.insert(*rng.choice(model.rows))
    elif kind in ("insert", "again") or not model.rows:
        model.insert(*values.values())
    elif kind == "delete":
        model.delete(rng.choice(model.rows))
    else:
        name = rng.choice(list(values))
        model.update(rng.choice(model.rows), **{name: values[name]})


ANEW = {f"write.{what}.mode": "copy-on-write" for what in ("merge", "delete", "update")}
MIXED = {"write.merge.mode": "copy-on-write"}


@pytest.mark.parametrize(
    ("seed", "version", "properties"), [(1, 2, {}), (2, 3, {}), (3, 2, ANEW), (4, 3, MIXED)]
)
def test_the_lake_has_each_row_as_often_as_the_source(
    spark: SparkSession,
    spark_platform: PlatformConfig,
    seed: int,
    version: int,
    properties: dict[str, str],
) -> None:
    lab = made(spark, spark_platform, format_version=version, properties=properties)
    rng, model = random.Random(seed), lab.tables[ROWS]
    twice = 0
    for _ in range(2 if properties else 4):
        for _ in range(rng.randint(20, 40)):
            change(model, rng)
            if rng.random() < 0.3:
                model.commit()
        change(model, rng)
        flow(lab)
        check_upsert(lab, model)
        twice += max(Counter(map(tuple, model.rows)).values(), default=0) > 1
    assert twice, "no rows were equal"


def test_a_batch_counts_once_wherever_it_died(
    lab: LakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lab.tables[ROWS]
    for _ in range(3):
        model.insert("1", "a", None)
    flow(lab)
    for point in ("before_commit", "after_removal", "after_commit", "after_publish"):
        model.update(model.rows[0], note=point)
        model.insert("1", "a", None)
        model.insert("1", "a", None)
        model.delete(model.rows[-1])
        model.delete(model.rows[1])
        model.commit()
        lab.capture()
        faults._hits.clear()
        monkeypatch.setenv("TIDEGATE_FAULT", f"apply.{point}@raise")
        with pytest.raises(faults.Fault):
            lab.apply()
        monkeypatch.delenv("TIDEGATE_FAULT")
        lab.apply()
        check_upsert(lab, model)
        assert lab.refs(model) == {"main"}


def test_a_row_the_lake_does_not_have_holds_the_table(lab: LakeLab) -> None:
    model = lab.tables[ROWS]
    model.insert("1", "a", None)
    model.insert("1", "a", None)
    flow(lab)
    before = lab.position(model)
    model.rows.append(["1", "a", None])  # a third one, which the lake never saw
    for _ in range(3):
        model.delete(model.rows[0])
    model.insert("2", "new", None)
    model.commit()
    lab.capture()
    result = lab.apply().tables[0]
    assert result.status is Status.HELD
    assert result.error is not None and result.error.code == "apply.row_missing"
    assert "1 rows" in result.error.message
    assert (len(lab.rows(model)), lab.position(model)) == (2, before), "all of it, or nothing"
    assert lab.gate.states()[ROWS].state is GateState.HELD


def test_what_cannot_be_applied_holds_the_table_until_it_is_mended(lab: LakeLab) -> None:
    model = lab.tables[ROWS]
    model.insert("1", "a", "1.00")
    flow(lab)
    before = lab.position(model)
    model.update(model.rows[0], price="12345678901234.00")
    model.insert("2", "b", None)
    model.commit()
    lab.capture()
    result = lab.apply().tables[0]
    assert result.status is Status.HELD and result.error is not None
    assert result.error.code == "apply.cast_failed" and "price" in result.error.message
    assert (lab.rows(model), lab.position(model)) == ([("1", "a", "1.00")], before)
    letters = DeadLetters(lab.catalog, lab.pipeline)
    assert letters.waiting(ROWS, lab.catalog.load_table(lab.target(model).identifier)) == []

    model.update(model.rows[0], price="2.00")  # nobody ever needs the value in between
    model.commit()
    lab.capture()
    lab.gate.open([ROWS], "mended", "test")
    assert lab.apply().tables[0].status is Status.APPLIED
    check_upsert(lab, model)


def test_rows_that_the_lake_cannot_tell_apart_are_counted_together(lab: LakeLab) -> None:
    """NaN becomes NULL by policy: the source has two kinds of rows, the lake has one."""
    model = lab.tables[ROWS]
    for price in ("NaN", None, "NaN", None):
        model.insert("1", "a", price)
    flow(lab)
    assert lab.rows(model) == [("1", "a", None)] * 4
    model.delete(next(row for row in model.rows if row[2] is None))
    model.update(next(row for row in model.rows if row[2] == "NaN"), price=None)
    model.update(next(row for row in model.rows if row[2] == "NaN"), price="1.00")
    flow(lab)
    assert lab.rows(model) == [("1", "a", "1.00"), *[("1", "a", None)] * 2]


def test_floats_are_told_apart_by_their_bits(
    spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    lab = LakeLab(spark, spark_platform, {ROWS: TableOptions()})
    model = lab.add(schema(ROWS, DOUBLE), full=True)
    for value in ("0", "-0", "NaN", "NaN", "0.1", "-0"):
        model.insert(value)
    flow(lab)
    model.delete(["-0"])
    model.delete(["NaN"])
    model.update(next(row for row in model.rows if row == ["0"]), d="-0")
    flow(lab)
    assert lab.rows(model) == [("-0.0",), ("-0.0",), ("0.1",), ("NaN",)]


def test_columns_that_come_and_go(lab: LakeLab) -> None:
    """A new column's default is in old rows; one that left tells no rows apart any more."""
    model = lab.tables[ROWS]
    model.insert("1", "a", "1.00")
    model.insert("1", "a", "2.00")
    model.insert("2", "b", "1.00")
    model.commit()
    lab.capture()
    lab.apply()
    model.insert("2", "b", "3.00")
    model.commit()
    lab.capture()
    model.evolve(schema(ROWS, number("n"), text("note"), text("extra")), default=None)
    model.delete(model.rows[0])
    model.update(next(row for row in model.rows if row[0] == "2"), extra="x")
    flow(lab)
    check_upsert(lab, model)
    model.delete(model.rows[0])
    flow(lab)
    check_upsert(lab, model)
    assert len(lab.rows(model)) == 2


def test_a_row_too_large_to_be_taken_holds_the_table(lab: LakeLab) -> None:
    """Neither a part of a row nor an old row that did not come equals any other."""
    model = lab.tables[ROWS]
    model.insert("1", None, None)
    flow(lab)
    for code, op, event in (
        ("apply.value_too_large", "insert", {"unchanged": [-2]}),
        ("apply.old_row_unknown", "delete", {"before": None}),
    ):
        if op == "insert":
            model.insert("1", None, None)
        else:
            model.delete(model.rows[0])
        model.commit()
        model.events[-1] |= event
        lab.capture()
        result = lab.apply().tables[0]
        assert result.status is Status.HELD
        assert result.error is not None and result.error.code == code
        assert len(lab.rows(model)) == 1
        model.truncate()
        model.insert("1", None, None)
        lab.gate.open([ROWS], "cleared", "test")
        flow(lab)
        check_upsert(lab, model)


def test_a_replay_would_double_rows(lab: LakeLab) -> None:
    model = lab.tables[ROWS]
    began = lab.clock.position
    model.insert("1", "a", None)
    flow(lab)
    with pytest.raises(TidegateError, match="has no key") as refused:
        run_set_offset(lab.spark, lab.pipeline, lab.platform, ROWS, str(began))
    assert refused.value.code == "offsets.would_double"
    assert replayable_from(lab.catalog, lab.pipeline, lab.platform.gate) == {ROWS: None}


@pytest.mark.parametrize(
    "options", [TableOptions(soft_delete=True), TableOptions(write_mode=WriteMode.HISTORY)]
)
def test_modes_that_keep_what_ended_need_a_key(
    spark: SparkSession, spark_platform: PlatformConfig, options: TableOptions
) -> None:
    lab = LakeLab(spark, spark_platform, {ROWS: options})
    with pytest.raises(ConfigError, match="cannot tell which of its rows"):
        lab.add(schema(ROWS, *COLUMNS), full=True)


def test_no_two_values_have_one_text(spark: SparkSession) -> None:
    times = ArrayType(TimestampNTZType())
    texts = ArrayType(StringType())
    pairs = [
        ("array(timestamp_ntz'2024-01-01 00:00:00.123456')", times),
        ("array(timestamp_ntz'2024-01-01 00:00:00.123457')", times),
        ("array(timestamp_ntz'2024-01-01 00:00:00.123456', null)", times),
        ("cast(null as array<string>)", texts),
        ("array('a', 'b')", texts),
        ("array('a, b')", texts),
        ("array('null')", texts),
        ("array(cast(null as string))", texts),
        ("array()", texts),
    ]
    found = spark.range(1).select(
        *(value_text(F.expr(sql).cast(type_), type_) for sql, type_ in pairs)
    )
    assert len(set(found.collect()[0])) == len(pairs)
    double = DoubleType()
    values = [F.lit(one).cast(double) for one in ("0.0", "-0.0", "NaN", None)]
    ids = spark.range(1).select(*(row_identity([(value, double)]) for value in values))
    assert len(set(ids.collect()[0])) == 4


def test_a_microsecond_within_a_list_is_a_difference(spark: SparkSession) -> None:
    """Of any table that is verified; with a key as well."""
    for element, literal in ((Kind.TIMESTAMP, "timestamp_ntz"), (Kind.TIMESTAMPTZ, "timestamp")):
        kind = LogicalType(Kind.LIST, element=LogicalType(element))
        column = Column("at", "", kind, TextRule.PG_ARRAY)
        sql = f"array({literal}'2024-01-01 00:00:00.00000{{}}', null)"
        rows = (spark.range(1).select(F.expr(sql.format(n)).alias("at")) for n in (1, 2))
        one, two = (row.select(row_digest([column])).collect()[0][0] for row in rows)
        assert one != two
