"""The highest key a table may hold, as its files' statistics tell it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.types import LongType

from tidegate.lake import key_ceiling
from tidegate.lake.key_ceiling import Ceiling

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("at", pa.date32())])


@pytest.fixture
def table(catalog: Catalog) -> Table:
    catalog.create_namespace("shop")
    return catalog.create_table(("shop", "orders"), SCHEMA)


def put(table: Table, *rows: tuple[int, str]) -> int:
    columns = {"id": [i for i, _ in rows], "name": [n for _, n in rows], "at": [None] * len(rows)}
    table.append(pa.table(columns, schema=SCHEMA))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def test_it_is_the_highest_of_all_files_as_of_a_snapshot(table: Table) -> None:
    first = put(table, (1, "a"), (300, "b"))
    second = put(table, (-5, "z"), (7, "c"))
    third = put(table, (70_000, "y"))
    assert key_ceiling.key_ceiling(table, second, "id") == Ceiling(300)
    assert key_ceiling.key_ceiling(table, third, "id") == Ceiling(70_000)
    assert key_ceiling.key_ceiling(table, first, "name") == Ceiling("b")
    assert key_ceiling.key_ceiling(table, third, "name") == Ceiling("z")


def test_it_survives_a_widened_column(table: Table) -> None:
    put(table, (-1, "a"))
    with table.update_schema() as update:
        update.update_column("id", LongType())
    assert key_ceiling.key_ceiling(table, put_long(table, 2**40), "id") == Ceiling(2**40)
    assert key_ceiling.key_ceiling(table, table.metadata.snapshots[0].snapshot_id, "id") == Ceiling(
        -1
    )


def put_long(table: Table, value: int) -> int:
    table.append(
        pa.table(
            {
                "id": pa.array([value], pa.int64()),
                "name": ["x"],
                "at": pa.array([None], pa.date32()),
            }
        )
    )
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def test_a_long_text_has_a_ceiling_above_it(table: Table) -> None:
    """Statistics cut texts off; what is left is rounded up."""
    ceiling = key_ceiling.key_ceiling(table, put(table, (1, "m" * 100)), "name")
    assert ceiling is not None
    assert str(ceiling.highest) >= "m" * 100


def test_a_table_without_rows_has_none_and_says_so(table: Table) -> None:
    table.append(pa.table({"id": [], "name": [], "at": []}, schema=SCHEMA))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert key_ceiling.key_ceiling(table, snapshot.snapshot_id, "id") == Ceiling(None)


def test_it_is_unknown_for_other_types_and_for_too_many_files(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(table, (1, "a"))
    last = put(table, (2, "b"))
    assert key_ceiling.key_ceiling(table, last, "at") is None
    monkeypatch.setattr(key_ceiling, "MAX_FILES", 1)
    assert key_ceiling.key_ceiling(table, last, "id") is None


def test_it_is_unknown_where_a_file_has_no_statistics(catalog: Catalog) -> None:
    catalog.create_namespace("other")
    properties = {"write.metadata.metrics.default": "none"}
    table = catalog.create_table(("other", "orders"), SCHEMA, properties=properties)
    assert key_ceiling.key_ceiling(table, put(table, (1, "a")), "id") is None
