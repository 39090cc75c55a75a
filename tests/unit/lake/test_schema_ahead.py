"""What the live source will bring, before a row tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.lake.schema_ahead import rewrites
from tidegate.schema.table_facts import Leaf, TableFacts

KNOWN = TableFacts(
    7, columns={"1": "a"}, types={"1": "integer"}, leaves={"7": Leaf("public.t", "70")}
)
WIDER = replace(KNOWN, types={"1": "bigint"})
MOVED = {"7": Leaf("public.t", "71")}


@pytest.mark.parametrize(
    ("now", "told_by", "told"),
    [
        (KNOWN, None, 0),
        (replace(KNOWN, leaves=MOVED), None, 0),  # VACUUM FULL
        (WIDER, None, 0),  # a longer varchar, say: no row was touched
        (replace(WIDER, leaves=MOVED), None, 1),
        (replace(WIDER, leaves=MOVED), "9/1/1", 0),  # the trigger tells of USING
        (replace(WIDER, leaves=MOVED, relation=8), None, 0),
    ],
)
def test_a_rewrite_is_named_where_nothing_tells_of_using(
    now: TableFacts, told_by: str | None, told: int
) -> None:
    found = list(rewrites(replace(KNOWN, told_by=told_by), now))
    assert len(found) == told
    assert all("USING" in line and "a (integer → bigint)" in line for line in found)
