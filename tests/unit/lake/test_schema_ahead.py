"""What the live source will bring, before a row tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.lake.schema_ahead import rewrites
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, TextRule

INT = LogicalType(Kind.INT)
A = Column("a", "integer", INT, TextRule.PG_NUMBER, number=1)
SWEPT = TableSchema(TableId("public", "t"), (A,), 7)


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (A, 0),
        (replace(A, source_type="bigint", type=LogicalType(Kind.LONG)), 1),
        (replace(A, source_type="text", type=STRING), 1),
        (replace(A, name="b"), 0),
    ],
)
def test_types_that_changed_since_the_sweep_are_named(column: Column, told: int) -> None:
    found = list(rewrites(SWEPT, replace(SWEPT, columns=(column,))))
    assert len(found) == told
    assert all("USING" in line for line in found)
