"""The page of MySQL's types says what the connector does."""

from __future__ import annotations

import re

from tidegate.connectors.mysql.type_reference import SHOWN
from tidegate.connectors.mysql.types import SUPPORTED, ColumnFacts, mapped

_WRITTEN = re.compile(
    r"(?P<base>[a-z0-9]+)(\((?P<first>\d+|n)(,(?P<second>\d+))?\))?(?P<un> unsigned)?"
)
_OTHER_NAMES = {"bool": "tinyint", "point": "geometry", "linestring": "geometry"}
_OTHER_NAMES["polygon"] = "geometry"


def facts_of(written: str) -> ColumnFacts:
    match = _WRITTEN.fullmatch(written)
    assert match is not None, written
    base = _OTHER_NAMES.get(match["base"], match["base"])
    first = int(match["first"]) if match["first"] and match["first"] != "n" else 0
    scale = int(match["second"] or 0)
    return ColumnFacts("", base, match["un"] is not None, first, scale)


def test_every_type_that_is_taken_stands_in_the_reference() -> None:
    assert {facts_of(name).base for shown in SHOWN for name in shown.written} == SUPPORTED


def test_all_types_of_a_row_have_the_lake_type_it_says() -> None:
    for shown in SHOWN:
        for name in shown.written:
            assert mapped(facts_of(name)).type == mapped(shown.facts).type, name
