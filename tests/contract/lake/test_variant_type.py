"""PyIceberg loads tables with variants and reads their other columns.

These fail when PyIceberg changes so that what Tidegate adds to it no longer fits.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io import pyarrow as files
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from tidegate.config.platform import PlatformConfig
from tidegate.errors import ConfigError, HeldError
from tidegate.lake.catalog import open_catalog
from tidegate.lake.query import query
from tidegate.lake.variant_files import look_past_variants, without_variants
from tidegate.lake.variant_type import VariantType, check_format, known, teach, variants
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind, LogicalType, TextRule

NAME = ("own", "docs")
FIELDS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "doc", "required": False, "type": "variant", "doc": "jsonb"},
    {"id": 3, "name": "note", "required": False, "type": "string"},
]


def metadata(folder: Path, version: int, fields: list[dict[str, Any]]) -> str:
    """As Spark writes the metadata of a new table; PyIceberg writes none of format 3."""
    content = {
        "format-version": version,
        "table-uuid": "9a1f5a0c-6f0c-4f5e-8d0b-1f6a2f1f6a2f",
        "location": str(folder),
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 3,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "next-row-id": 0,
    }
    path = folder / "metadata" / "00000-a.metadata.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))
    return str(path)


@pytest.fixture
def docs(platform: PlatformConfig, tmp_path: Path) -> Table:
    catalog = open_catalog(platform)
    catalog.create_namespace(NAME[0])
    catalog.register_table(NAME, metadata(tmp_path / "docs", 3, FIELDS))
    return open_catalog(platform).load_table(NAME)


def test_a_table_with_a_variant_is_loaded(docs: Table) -> None:
    assert docs.schema().find_field("doc").field_type == VariantType()
    assert str(docs.schema().find_field("doc")) == "2: doc: optional variant (jsonb)"
    assert variants(docs.schema()) == {"doc"}
    assert pickle.loads(pickle.dumps(docs.schema())) == docs.schema()
    assert docs.metadata.schemas[0].model_dump()["fields"][1]["type"] == "variant"


def test_without_help_pyiceberg_still_refuses_it() -> None:
    """Else the help can go. A process of its own: this one has been taught."""
    code = "from pyiceberg.types import NestedField; NestedField(1, 'a', 'variant')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Unsupported field type: 'variant'" in run.stderr


def test_teaching_twice_or_one_who_knows_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    teach()
    parse = vars(NestedField.__mro__[1])["handle_primitive_type"]
    teach()
    assert vars(NestedField.__mro__[1])["handle_primitive_type"] is parse
    look_past_variants()
    convert = files.pyarrow_to_schema
    look_past_variants()
    assert files.pyarrow_to_schema is convert
    # A PyIceberg that has a type of its own reads files with it, too.
    monkeypatch.setattr("tidegate.lake.variant_type.known", lambda: StringType())
    monkeypatch.setattr(files, "pyarrow_to_schema", len)
    look_past_variants()
    assert files.pyarrow_to_schema is len
    teach()
    assert vars(NestedField.__mro__[1])["handle_primitive_type"] is parse


def test_other_types_are_read_as_before() -> None:
    teach()
    assert NestedField(1, "a", "long").field_type == LongType()
    assert isinstance(known(), VariantType)
    with pytest.raises(ValueError, match="Unsupported field type"):
        NestedField(1, "a", "variants")


def test_rows_are_asked_for_without_the_document(docs: Table) -> None:
    assert query(docs).rows.column_names == ["id", "note"]
    for wrong in ({"columns": ("id", "doc")}, {"where": "id > 1 and not (doc is null)"}):
        with pytest.raises(ConfigError, match="doc") as caught:
            query(docs, **wrong)  # type: ignore[arg-type]
        assert (caught.value.code, "Spark" in caught.value.hint) == ("query.variant", True)


def field(name: str, type_: pa.DataType, number: int | None) -> pa.Field:
    ids = {} if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(name, type_, metadata=ids)


def test_a_file_is_seen_without_its_variants_and_with_its_structs() -> None:
    parts = [field("metadata", pa.binary(), None), field("value", pa.binary(), None)]
    shredded = [*parts, field("typed_value", pa.int64(), None)]
    ours = [field("metadata", pa.binary(), 6), field("value", pa.binary(), 7)]
    schema = pa.schema(
        [
            field("id", pa.int64(), 1),
            field("doc", pa.struct(parts), 2),
            field("shredded", pa.struct(shredded), 3),
            field("pair", pa.struct(ours), 4),
        ]
    )
    assert without_variants(schema).names == ["id", "pair"]
    teach()
    look_past_variants()
    found = files.pyarrow_to_schema(schema)
    assert isinstance(found, Schema)
    assert [one.name for one in found.fields] == ["id", "pair"]


def test_a_table_of_an_older_format_is_held(platform: PlatformConfig, tmp_path: Path) -> None:
    catalog = open_catalog(platform)
    catalog.create_namespace(NAME[0])
    catalog.register_table(NAME, metadata(tmp_path / "old", 2, FIELDS[::2]))
    table = catalog.load_table(NAME)
    doc = Column("doc", "jsonb", LogicalType(Kind.VARIANT), TextRule.PLAIN)
    schema = TableSchema(TableId("public", "docs"), (doc,))
    check_format(table, [])
    with pytest.raises(HeldError, match=r"format 2.*doc") as caught:
        check_format(table, [schema])
    assert caught.value.code == "schema.variant_format"
