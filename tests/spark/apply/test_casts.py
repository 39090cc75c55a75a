"""Casts give exactly what Python's parsers give, fail on everything else, and count policies."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tests.spark.apply.cast_oracle import column, expected, float_bits
from tidegate.schema.types import Kind, LogicalType, Policy
from tidegate.spark.casts import CastResult, cast

pytestmark = pytest.mark.spark

INT, LONG = LogicalType(Kind.INT), LogicalType(Kind.LONG)
FLOAT, DOUBLE = LogicalType(Kind.FLOAT), LogicalType(Kind.DOUBLE)
DATE, TIMESTAMP, TIMESTAMPTZ = (
    LogicalType(kind) for kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
)
MONEY = LogicalType(Kind.DECIMAL, 12, 2)
SCALARS = [
    LogicalType(Kind.BOOLEAN), INT, LONG, FLOAT, DOUBLE, MONEY,
    LogicalType(Kind.DECIMAL, 38, 0), LogicalType(Kind.DECIMAL, 5, 5),
    DATE, TIMESTAMP, TIMESTAMPTZ, LogicalType(Kind.BINARY), LogicalType(Kind.STRING),
]  # fmt: skip

TRAPS: list[str | None] = [
    None, "", " ", "t", "f", "true", "T", "1", "-1", "0", "-0", "+1", "01", " 1", "1 ", "1\n",
    "1.0", "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "99999999999999999999",
    "1e400", "-1e400", "1e-400", "0e-400", "1e308", "1.7976931348623157e+308", "5e-324",
    "2.2250738585072014e-308", "3.4028235e+38", "3.4028236e+38", "1e39", "1e-45", "1e-46", "0.1",
    "-0.0", "NaN", "Infinity", "-Infinity", "infinity", "-infinity", "nan", "inf", "0x10", "1d",
    "1f", "1_000", "1,000", "1.239", "1.230", "1.2300000000000000000000", "9999999999.99",
    "10000000000.00", "00000000000001.20", ".5", "5.", "-", "-.", "0.12345", "0.123456",
    "1.00000", "9" * 38, "9" * 39, "-" + "9" * 38, "2024", "2024-01", "2024-1-1", "2024-01-01",
    "2024-02-29", "2023-02-29", "2024-02-30", "2024-13-01", "0000-01-01", "0001-01-01",
    "9999-12-31", "10000-01-01", "5874897-12-31", "0044-03-15 BC", "4713-01-01 BC", "1582-10-10",
    "1900-01-01", "01024-01-01", "2024-01-01 00:00:00", "2024-01-01T00:00:00",
    "2024-01-01 24:00:00", "2024-01-01 23:59:60", "2024-01-01 12:34:56.1",
    "2024-01-01 12:34:56.123456", "2024-01-01 12:34:56.1234567", "2024-01-01 12:34",
    "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "294276-12-31 23:59:59.999999",
    "0044-03-15 12:00:00 BC", "1969-12-31 23:59:59.999999", "2024-01-01 12:34:56+00",
    "2024-01-01 12:34:56.5+05:30", "2024-01-01 12:34:56-03:30:15", "2024-01-01 12:34:56+15:59:59",
    "2024-01-01 12:34:56Z", "2024-01-01 12:34:56 UTC", "2024-01-01 12:34:56 Europe/Berlin",
    "0001-01-01 00:30:00+01", "9999-12-31 23:30:00-01", "0001-01-01 00:00:00+00",
    "9999-12-31 23:59:59.999999+00", "10000-01-01 00:00:00+00", "0044-03-15 12:00:00+00 BC",
    "1883-11-18 12:03:58-04:56:02", "2024-02-30 00:00:00+00", "\\x", "\\x00ff", "\\x0", "\\xzz",
    "\\X00", "x00", "\\x00 ", "now", "today", "epoch", "é", "💧",
]  # fmt: skip


Job = tuple[LogicalType, Policy, list[str | None]]


def evaluate(spark: SparkSession, jobs: list[Job]) -> list[list[tuple[str, Any]]]:
    """All casts in one Spark job: column i of the frame holds the texts of job i."""
    height = max(len(texts) for *_, texts in jobs)
    padded = [texts + [None] * (height - len(texts)) for *_, texts in jobs]
    frame = spark.createDataFrame(
        [(number, *row) for number, row in enumerate(zip(*padded, strict=True))],
        "n int, " + ", ".join(f"t{i} string" for i in range(len(jobs))),
    )
    outcomes = [
        _outcome(cast(column(type_, policy), F.col(f"t{i}")), type_).alias(f"o{i}")
        for i, (type_, policy, _) in enumerate(jobs)
    ]
    rows = frame.select("n", *outcomes).orderBy("n").collect()
    return [
        [_read(rows[j][f"o{i}"], type_) for j in range(len(texts))]
        for i, (type_, _, texts) in enumerate(jobs)
    ]


def _outcome(result: CastResult, type_: LogicalType) -> Column:
    value = result.value
    if type_.kind is Kind.TIMESTAMPTZ:
        value = F.unix_micros(value)
    if type_.kind is Kind.TIMESTAMP:
        value = F.unix_micros(value.cast("timestamp"))
    return F.struct(value.alias("v"), result.failed.alias("f"), result.adjusted.alias("a"))


def _read(row: Any, type_: LogicalType) -> tuple[str, Any]:
    assert row.f in (True, False) and row.a in (True, False)  # flags are never NULL
    assert not (row.f and row.a)
    value = row.v
    if type_.kind in (Kind.FLOAT, Kind.DOUBLE):
        value = float_bits(value, type_.kind)
    if isinstance(value, bytearray):
        value = bytes(value)
    if row.f:
        return ("failed", value)
    return ("adjusted" if row.a else "ok", value)


def check(spark: SparkSession, jobs: list[Job]) -> None:
    wrong = [
        (str(type_), policy.value, text, got, want)
        for (type_, policy, texts), found in zip(jobs, evaluate(spark, jobs), strict=True)
        for text, got in zip(texts, found, strict=True)
        if got != (want := expected(type_, policy, text))
    ]
    assert not wrong


@pytest.mark.parametrize("policy", sorted(set(Policy) - {Policy.STRING}))
def test_known_traps(spark: SparkSession, policy: Policy) -> None:
    check(spark, [(type_, policy, TRAPS) for type_ in SCALARS])


def _digits(rng: random.Random, least: int, most: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(rng.randint(least, most)))


def _number(whole: int, fraction: int, exponent: bool = False) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        text = rng.choice(["", "-"]) + _digits(rng, 1, whole)
        if rng.random() < 0.7:
            text += "." + _digits(rng, 1, fraction)
        if exponent and rng.random() < 0.7:
            text += f"e{rng.choice(['', '+', '-'])}{rng.randint(0, 400)}"
        return text

    return make


def _float_text(width: str) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        value = struct.unpack(width, rng.randbytes(struct.calcsize(width)))[0]
        return repr(value).replace("nan", "NaN").replace("inf", "Infinity")

    return make


def _date(rng: random.Random) -> str:
    return f"{rng.randint(0, 12000):04d}-{rng.randint(0, 13):02d}-{rng.randint(0, 32):02d}"


def _timestamp(rng: random.Random) -> str:
    clock = f"{rng.randint(0, 24):02d}:{rng.randint(0, 60):02d}:{rng.randint(0, 60):02d}"
    fraction = rng.choice(["", "." + _digits(rng, 1, 7)])
    return f"{_date(rng)} {clock}{fraction}"


def _instant(rng: random.Random) -> str:
    offset = f"{rng.choice('+-')}{rng.randint(0, 15):02d}"
    for _ in range(rng.randint(0, 2)):
        offset += f":{rng.randint(0, 59):02d}"
    return _timestamp(rng) + offset + rng.choice(["", "", "", " BC"])


GENERATORS: list[tuple[LogicalType, Callable[[random.Random], str]]] = [
    (INT, lambda rng: str(rng.randint(-(2**33), 2**33))),
    (LONG, lambda rng: str(rng.randint(-(2**65), 2**65))),
    (DOUBLE, _float_text(">d")),
    (DOUBLE, _number(20, 20, exponent=True)),
    (FLOAT, _float_text(">f")),
    (MONEY, _number(13, 4)),
    (LogicalType(Kind.DECIMAL, 38, 10), _number(29, 11)),
    (DATE, _date),
    (TIMESTAMP, _timestamp),
    (TIMESTAMPTZ, _instant),
    (LogicalType(Kind.BINARY), lambda rng: "\\x" + rng.randbytes(rng.randint(0, 40)).hex()),
]


@pytest.mark.parametrize("seed", [1, 2])
def test_generated_texts(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    check(
        spark,
        [(type_, Policy.CLAMP, [make(rng) for _ in range(1500)]) for type_, make in GENERATORS],
    )
