"""Random transactions in every write mode; the lake is what the model says after every batch."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from tests.spark.apply.lake_lab import (
    Check,
    LakeLab,
    check_append,
    check_history,
    check_soft,
    check_upsert,
)
from tests.support.changes import BIG, ModelTable, money, number, schema, text
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import TableOptions, WriteMode
from tidegate.jobs.apply import Status
from tidegate.spark import modes

pytestmark = pytest.mark.spark

MODES: dict[str, tuple[TableOptions, Check, bool]] = {
    "public.plain": (TableOptions(), check_upsert, False),
    "public.full": (TableOptions(), check_upsert, True),
    "public.pair": (TableOptions(partition_by=("bucket(2, id)",)), check_upsert, False),
    "public.soft": (TableOptions(soft_delete=True), check_soft, False),
    "public.append": (TableOptions(write_mode=WriteMode.APPEND), check_append, False),
    "public.history": (TableOptions(write_mode=WriteMode.HISTORY), check_history, False),
}


def big(rng: random.Random) -> str | None:
    return rng.choice([None, "small", BIG + str(rng.randint(0, 9)) * 5, BIG + "é" * 4])


def amount(rng: random.Random) -> str | None:
    return rng.choice([None, f"{rng.randint(-999, 999)}.{rng.randint(10, 99)}"])


def free_key(model: ModelTable, rng: random.Random) -> str:
    taken = {row[0] for row in model.rows}
    if rng.random() < 0.3:  # most tables grow at one end
        return str(max((int(row[0] or 0) for row in model.rows), default=24) + 20)
    return rng.choice([str(n) for n in range(-5, 25) if str(n) not in taken])


def swap(model: ModelTable, rng: random.Random) -> None:
    """Two rows exchange their keys through a third one, as an immediate key allows."""
    one, two = rng.sample(model.rows, 2)
    first, second, third = one[0], two[0], free_key(model, rng)
    model.update(one, id=third)
    model.update(two, id=first)
    model.update(one, id=second)


def change(model: ModelTable, rng: random.Random) -> None:
    kind = rng.choices(
        ["insert", "update", "move", "swap", "delete", "truncate"], [30, 35, 12, 6, 14, 2]
    )[0]
    if kind == "truncate":
        model.truncate()
    elif kind == "insert" or len(model.rows) < 2:
        if len(model.rows) < 20:
            model.insert(free_key(model, rng), big(rng), amount(rng), big(rng))
    elif kind == "swap":
        swap(model, rng)
    else:
        row = rng.choice(model.rows)
        if kind == "delete":
            model.delete(row)
        elif kind == "move":
            model.update(row, id=free_key(model, rng), **rng.choice([{}, {"a": big(rng)}]))
        else:
            model.update(
                row, **rng.choice([{"price": amount(rng)}, {"a": big(rng)}, {"b": big(rng)}])
            )


@pytest.mark.parametrize(("seed", "fresh_rows"), [(11, modes.FRESH_ROWS), (12, 1)])
def test_lake_follows_the_source(
    spark: SparkSession,
    spark_platform: PlatformConfig,
    seed: int,
    fresh_rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once with merges alone, once with every row under a new key appended."""
    monkeypatch.setattr(modes, "FRESH_ROWS", fresh_rows)
    rng = random.Random(seed)
    lab = LakeLab(spark, spark_platform, {name: mode[0] for name, mode in MODES.items()})
    columns = (number("id", key=0), text("a"), money("price"), text("b"))
    for name, (_, _, full) in MODES.items():
        lab.add(schema(name, *columns), full=full)
    for _ in range(4):
        for model in lab.tables.values():
            for _ in range(rng.randint(1, 8)):
                for _ in range(rng.randint(1, 5)):
                    change(model, rng)
                model.commit()
        captured = lab.capture()
        result = lab.apply()
        assert [(t.table, t.status, t.error) for t in result.tables] == [
            (name, Status.APPLIED, None) for name in MODES
        ]
        for name, (_, check, _) in MODES.items():
            assert lab.position(lab.tables[name]) == captured
            check(lab, lab.tables[name])
