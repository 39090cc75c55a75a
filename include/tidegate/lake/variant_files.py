"""Files with variants, for a PyIceberg that does not know them.

PyIceberg 0.12 asks a field id of everything in a file, even where other columns are read, and the
parts of a variant have none. So variants are left out of what it sees of a file. A column that is
not in a file reads as NULL, so whoever reads must not ask for them (``lake/query.py``).
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyiceberg.io import pyarrow as files
from pyiceberg.schema import Schema

from tidegate.lake import variant_type

_FIELD_ID: Final = b"PARQUET:field_id"
_PARTS: Final = frozenset({"metadata", "value"})
_SHREDDED: Final = _PARTS | {"typed_value"}


def look_past_variants() -> None:
    """Have PyIceberg read the other columns of tables with variants; does nothing to one that
    reads them. Idempotent."""
    taught = isinstance(variant_type.known(), variant_type.VariantType)
    convert: Any = files.pyarrow_to_schema
    if not taught or convert.__module__ == __name__:
        return

    def pyarrow_to_schema(schema: pa.Schema, *arguments: Any, **named: Any) -> Schema:
        found: Schema = convert(without_variants(schema), *arguments, **named)
        return found

    setattr(files, "pyarrow_to_schema", pyarrow_to_schema)  # noqa: B010


def without_variants(schema: pa.Schema) -> pa.Schema:
    return pa.schema([one for one in schema if not _is_variant(one.type)], schema.metadata)


def _is_variant(type_: pa.DataType) -> bool:
    """A struct of the lake's has other names, or field ids in its parts."""
    if not pa.types.is_struct(type_):
        return False
    parts = [type_.field(place) for place in range(type_.num_fields)]
    bare = all(_FIELD_ID not in (part.metadata or {}) for part in parts)
    return bare and _PARTS <= {part.name for part in parts} <= _SHREDDED
