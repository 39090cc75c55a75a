"""``docs/reference/types.md``, written from the table the connector maps by."""

from __future__ import annotations

from typing import Final

from tidegate.connectors.postgres.settings import PINNED
from tidegate.connectors.postgres.types import SCALARS, Scalar
from tidegate.schema.types import Kind

_HEAD: Final = """\
# Types: PostgreSQL to Iceberg

<!-- Written by `python docs/generate.py` from tidegate.connectors.postgres.types. Do not edit. -->

The lake holds exactly what the source held, whether a row came by a sweep or by the log, or
Tidegate says that it does not: a value outside its lake type is adjusted by a policy and counted,
or its row waits as a dead letter. Nothing is rounded, truncated or guessed. Each row below has
cases in the [conformance suite](../../tests/conformance/README.md).

| PostgreSQL | lake | rule |
|---|---|---|
"""

_NUMERICS: Final = """\
| `numeric(p,s)`, p ≤ 38, 0 ≤ s ≤ p | `decimal(p,s)` | NaN by the numeric policy |
| `numeric`; p > 38; s < 0 or s > p | `string` | every digit as printed, trailing zeros, NaN and \
±Infinity included; can become `decimal(p,s)` or `long` |
"""
_OTHERS: Final = """\
| array of a type above, declared with one dimension | `list` of its lake type | NULL elements and \
empty arrays are kept; policies act on elements; a value with more dimensions or shifted bounds \
cannot be taken: give such a column `type: string` |
| array declared with more dimensions, `box[]` | `string` | as PostgreSQL prints it |
| domain | as its base type | through any number of domains |
| enum, composite, range, multirange, geometric, network, bit string, text search, xml, and all \
types of extensions (hstore, ltree, citext, PostGIS, pgvector, …) | `string` | the text its output \
function prints, the same on both paths |
"""

_REST: Final = """
A value larger than `capture.max_value_bytes` (64 MiB of text, of PostgreSQL's 1 GB) is not taken:
its change, or its row in a sweep, becomes a dead letter without it.

Generated columns are not in the log before PostgreSQL 18 and so not in the lake; 18 sends stored
ones if the publication says so.

## Values no lake type holds

| value | default | other policies |
|---|---|---|
| `infinity`, `-infinity`, BC, years after 9999 in dates and timestamps | `clamp`: the first or \
last value of the years 1 to 9999 | `null`, `string`, `reject` |
| `NaN` in a numeric that is a decimal in the lake | `null` | `string`, `reject` |
| any of these in a **key** column | `reject`: two rows made alike would become one | `string`; \
`clamp` if you say so for the column |

`string` makes the column text (a list: a list of texts) from the start. `reject` makes the change,
or the row of a sweep, a [dead letter](../guides/dead-letters.md) until the source or the file is
mended. Every adjusted value is counted per column in the result of the run that adjusted it.

```yaml
sinks:
  - sink_id: lake
    sink_type: iceberg
    iceberg:
      policies: {datetime: clamp, numeric: "null"}   # of every table
      tables:
        public.payments:
          policies: {datetime: reject}               # of this table
          columns:
            amount: {type: "decimal(38,9)"}          # an unconstrained numeric
            valid_to: {policy: string}
            matrix: {type: string}                   # int[] that holds two-dimensional values
            details: {type: variant}                 # jsonb, parsed
```

| a column that is | can be given `type:` |
|---|---|
| anything | `string` |
| smallint, integer, bigint, numeric, oid | `long` (what prints as a whole number: `12`, not \
`12.00`), `decimal(p,s)`; a value that does not fit exactly is rejected |
| an array | `list<…>` of what its elements can be |
| json, jsonb (not a domain or array of them) | `variant` |

Changing `type` or `policy: string` of a table that exists changes a lake column's type, which the
lake never does in place: the table is held until it is given a new `table_name` and swept.

## Documents as variants

`type: variant` makes Iceberg's variant of a json or jsonb column: parsed once, when it is written,
and queried by path. A document and its variant are equal as JSON values; white space, the order of
keys and zeros at the end of a fraction are no part of it. `null` in the document is a value, and
not NULL.

A document that a variant cannot hold is rejected, in a sweep as in the log: a number with an
exponent (json only: jsonb has none), with more than 38 digits or more than 38 after the point, or
−0; a key with two values, or half of a surrogate pair (json only); more than 1,000 levels, a string
of more than 20 million characters, a variant of more than 128 MiB.

The table must have `format_version: 3`, the default. A variant cannot be part of the key
(`table.variant_key`), of `partition_by` or `sort_by` (`table.term`). `verify` compares such tables
by their rows; the source does not sum them up.

| reader | seen |
|---|---|
| Spark 4.1 with Iceberg 1.12 | reads and writes it: `variant_get(details, '$.a.b', 'string')` |
| DuckDB 1.5.5, `iceberg_scan` | reads it as `VARIANT`; does not tell `null` from NULL, and has no \
Arrow form of it |
| PyIceberg 0.12 | cannot load such a table by itself. Tidegate's own processes can: \
`tidegate lakehouse query` shows the other columns and refuses this one (`query.variant`) |

## Sessions

Settings of the source that decide how values print are pinned in every session of Tidegate's, so
that neither a server's nor a role's settings change what arrives:

"""

_NUMBERS: Final = frozenset({Kind.BOOLEAN, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE})


def reference() -> str:
    """The page."""
    numbers = "".join(_row(s) for s in SCALARS if s.mapped.type.kind in _NUMBERS)
    rest = "".join(_row(s) for s in SCALARS if s.mapped.type.kind not in _NUMBERS)
    pinned = "\n".join(f"- `{name}` = `{value}`" for name, value in PINNED.items())
    return _HEAD + numbers + _NUMERICS + rest + _OTHERS + _REST + pinned + "\n"


def _row(scalar: Scalar) -> str:
    shown = ", ".join(f"`{name}`" for name in scalar.shown.split(", "))
    return f"| {shown} | `{scalar.mapped.type}` | {scalar.note} |\n"
