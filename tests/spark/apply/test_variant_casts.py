"""Documents become variants that are equal as JSON values; all others fail."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidegate.schema.table import Column
from tidegate.schema.types import Kind, LogicalType, TextRule
from tidegate.spark.casts import cast

pytestmark = pytest.mark.spark

DOC = Column("doc", "jsonb", LogicalType(Kind.VARIANT), TextRule.PLAIN, recast=True)
NINES, ONES = "9" * 38, "1" * 38

EXACT = [
    "null", "true", "false", "0", "1", "-1", "0.0", "1.50", "-0.5", "-0.01", "1000", "0.10",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", NINES, f"-{NINES}",
    f"0.{ONES}", f"-0.{ONES}", f"0.{'0' * 37}1", f"1.{'1' * 37}", f"{'1' * 20}.{'1' * 18}",
    '""', '"a"', r'"\""', r'"\\"', r'"\\ud800"', r'"\/\b\f\n\r\t"', r'"\u0000"', r'"\ud83d\ude00"',
    r'"\uD83D\uDE00 \ue000"', '"😀 é"', '"1e2 -0 0e1"', '"[{"', "{}", "[]", " [ ] ", "\t{\n}\r",
    '{"b": 1, "a": {"z": [1, null, {}], "y": ""}}', '[[[]], {"": [[]]}]', '{"": null, " ": "null"}',
    '{"a": [], "é": 1, "😀": 2, "\ue000": 3}', "[1,-2,3.5,true,false,null]",
    r'{"\"": 1, "\\": 2}', '{"e": "E", "k": [10, 20.0]}', "[" + "1," * 200_000 + "1]",
    '"' + "x" * 1_000_000 + '"', '"' + r"\n" * 300_000 + '"',
]  # fmt: skip

INEXACT = [
    "1e2", "1E2", "1e-2", "1.5e0", "0e0", "[1e400]", '{"a": 1E-400}', NINES + "9", "1" + "0" * 38,
    f"0.{ONES}1", f"1.{ONES}", f"{'1' * 20}.{'1' * 19}", f"0.{'0' * 38}1", f"0.{'0' * 39}",
    "-0", "-0.0", "-0.00", "[-0]", '{"a": -0.0}', "-0e0",
    r'"\ud800"', r'"\udc00"', r'"\ud800\ud800"', r'"\ud800a"', r'"\udc00\ud800"', r'"\"\ud800"',
    r'["\ud83d\ude00", "\uDFFF", "a"]', r'{"\ud800": 1}', r'"\\\ud800"', r'"\ud800\n"',
    '{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 1}}', r'{"a": 1, "\u0061": 2}',
]  # fmt: skip

NO_JSON = [
    "", " ", "nul", "True", "NaN", "Infinity", "01", "+1", ".5", "1.", "1..5", "-", "'a'",
    '"a', 'a"',
    "[1,]", "[1", "{1}", '{"a"}', '{"a":}', "{'a': 1}", "/*c*/1", "\ufeff1", "\x0b1", r'"\x"',
    r'"\u00g0"', r'"\u12"', "1 2", "{} x", "[1] }", '{} "a"', '"a" "b"', "null null", "1,2", "[1],",
    "\u00a01", "1\u2003",
]  # fmt: skip


def evaluate(spark: SparkSession, texts: list[str | None]) -> list[tuple[str | None, bool]]:
    frame = spark.createDataFrame(list(enumerate(texts)), "n int, t string")
    result = cast(DOC, F.col("t"))
    rows = frame.select("n", F.to_json(result.value).alias("v"), result.failed, result.adjusted)
    found = rows.orderBy("n").collect()
    assert not any(row[3] for row in found)
    return [(row.v, row[2]) for row in found]


def value(text: str | None) -> Any:
    """Numbers by value, and never equal to a boolean."""
    return None if text is None else json.loads(text, parse_int=Decimal, parse_float=Decimal)


def alike(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def test_exact_documents_are_equal_as_json_values(spark: SparkSession) -> None:
    found = evaluate(spark, [*EXACT, None])
    assert not any(failed for _, failed in found)
    for text, (shown, _) in zip(EXACT, found, strict=False):
        assert shown is not None and alike(value(shown), value(text)), text[:60]
    assert found[-1] == (None, False)


def test_what_a_variant_does_not_hold_fails(spark: SparkSession) -> None:
    assert evaluate(spark, INEXACT) == [(None, True)] * len(INEXACT)


def test_what_is_no_document_fails_and_never_raises(spark: SparkSession) -> None:
    assert evaluate(spark, NO_JSON) == [(None, True)] * len(NO_JSON)


def test_documents_are_held_to_a_thousand_levels(spark: SparkSession) -> None:
    held, refused = ("[" * levels + "]" * levels for levels in (1000, 1001))
    assert evaluate(spark, [held, refused]) == [(held, False), (None, True)]


def test_a_string_beyond_the_parsers_limit_fails(spark: SparkSession) -> None:
    text = F.concat(F.lit('"'), F.repeat(F.lit("x"), 20_000_001), F.lit('"'))
    result = cast(DOC, text)
    found = spark.range(1).select(result.value.isNull(), result.failed).collect()
    assert tuple(found[0]) == (True, True)


def document(rng: random.Random, depth: int = 0) -> str:
    """A text with every kind of value, now and then one that cannot be held."""
    kinds = 4 if depth > 3 else 6
    space = rng.choice(["", "", " ", "\n  "])
    match rng.randrange(kinds):
        case 0:
            return rng.choice(["null", "true", "false"])
        case 1:
            whole = rng.choice(["0", str(rng.randrange(1, 10 ** rng.randint(1, 40)))])
            point = f".{rng.randrange(10 ** rng.randint(1, 20))}" if rng.random() < 0.5 else ""
            tail = rng.choice(["e1", "E-2"]) if rng.random() < 0.02 else ""
            return rng.choice(["", "-"]) + whole + point + tail
        case 2 | 3:
            return string(rng)
        case 4:
            elements = (document(rng, depth + 1) for _ in range(rng.randint(0, 4)))
            return f"[{space}{f',{space}'.join(elements)}]"
    keys = [string(rng) for _ in range(rng.randint(0, 4))]
    pairs = (f"{key}:{space}{document(rng, depth + 1)}" for key in keys)
    return f"{{{space}{f',{space}'.join(pairs)}{space}}}"


def string(rng: random.Random) -> str:
    parts = ["a", "b", "é", "😀", " ", r"\n", r"\\", r"\"", r"\u00e9", r"\ud83d\ude00", "{", "1e5"]
    chosen = rng.choices(parts, k=rng.randint(0, 4))
    if rng.random() < 0.01:
        chosen.append(r"\ud83d")
    return f'"{"".join(chosen)}"'


def holdable(text: str) -> bool:
    """By Python's parser: whether a variant can hold the document."""
    exact = True

    def number(digits: str) -> Decimal:
        nonlocal exact
        found = Decimal(digits)
        _, places, exponent = found.as_tuple()
        exact &= "e" not in digits.lower() and not (found.is_signed() and found == 0)
        exact &= isinstance(exponent, int) and -exponent <= 38 and len(places) <= 38
        return found

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal exact
        exact &= len({key for key, _ in items}) == len(items)
        return dict(items)

    whole = json.loads(text, parse_int=number, parse_float=number, object_pairs_hook=pairs)
    try:
        json.dumps(whole, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return False
    return exact


def test_random_documents_are_held_exactly_or_fail(spark: SparkSession) -> None:
    rng = random.Random(11)
    texts = [document(rng) for _ in range(3000)]
    wanted = [holdable(text) for text in texts]
    assert 500 < sum(wanted) < 2900
    for text, exact, (shown, failed) in zip(texts, wanted, evaluate(spark, [*texts]), strict=True):
        assert failed is not exact, text
        assert not exact or alike(value(shown), value(text)), text
