"""Changes of one table with typed values: the columns every later step works on.

User columns are addressed by place, never by name, so that no name can clash or need quoting:

- ``pos`` ``seq``: place in the log, and half (see below)
- ``tx`` ``cts`` ``eid``: transaction, commit time, event id
- ``act``: ``c`` a new row, ``u`` a row put again, ``i`` moved in, ``d`` gone, ``o`` moved out
- ``k0…``: typed key of the row this half addresses
- ``v0…``: typed values, one per lake column; NULL where not known
- ``n3…``: only for columns with TOAST gaps: value 3 was not sent
- ``bad0…`` ``adj0…``: bit sets: columns that did not cast, columns that a policy adjusted
- ``bh`` ``ah`` ``sid``: where the source sends old rows: fingerprints of old and new row, schema

A key change is two halves at one place: ``o`` (seq 0) under the old key, then ``i`` (seq 1) under
the new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from tidegate.envelope.change import Op
from tidegate.envelope.log_rows import too_large
from tidegate.schema.table import Column, TableSchema
from tidegate.spark.casts import cast
from tidegate.spark.casts.result import Flags
from tidegate.spark.survey import SchemaShare

BITS: Final = 32
"""Columns per bit set; a bigint would hold 63, a round number reads better."""
PUTS: Final = ("c", "u", "i")
_FLAGS: Final = ("bad", "adj")
"""Of columns that failed, and of those that were adjusted: in the order of ``Flags``."""
_RAW: Final = ("op", "key", "before", "after", "unchanged")
"""Of the log, until values are cast."""


@dataclass(frozen=True, slots=True)
class LakeShape:
    """The lake table's own columns (without ``_cdc_`` ones), in order, and which are the key."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    key: tuple[int, ...]  # indexes into names, in key order

    @property
    def keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.key))]

    @property
    def values(self) -> list[str]:
        return [f"v{i}" for i in range(len(self.names))]

    @property
    def words(self) -> range:
        return range((len(self.names) + BITS - 1) // BITS)

    def gaps(self, schemas: Iterable[tuple[TableSchema, SchemaShare]]) -> tuple[int, ...]:
        """Columns that some change did not send and that no old row supplies."""
        found = {
            self.names.index(schema.columns[slot].name)
            for schema, share in schemas
            for slot in share.gaps
            if _gapped(schema.columns[slot], self.names)
        }
        return tuple(sorted(found))


def typed(
    log: DataFrame,
    shape: LakeShape,
    schemas: Sequence[tuple[TableSchema, SchemaShare]],
    gaps: Sequence[int],
    *,
    old_rows: bool = False,
) -> DataFrame:
    """Row changes of ``log`` (already narrowed to one table and range) as typed halves.

    Rows of several schemas are cast each under its own, then put under each other. With
    ``old_rows`` a delete carries what is known of the row: all of it, or its key.
    """
    images = any(share.images for _, share in schemas)
    parts = []
    for schema, share in schemas:
        cells = cells_of(shape, schema, share, old_rows)
        own = log.where(F.col("schema_id") == share.schema_id)
        parts.append(cast_values(keyed(own, shape, schema, cells, images), shape, cells, gaps))
    return reduce(DataFrame.unionByName, parts)


def fingerprint(slots: Expr) -> Expr:
    """64 bits of a row's texts; NULL slots count, which Spark's hashes skip."""
    marked = F.transform(slots, lambda slot: F.coalesce(F.concat(F.lit("="), slot), F.lit("")))
    return F.when(slots.isNotNull(), F.xxhash64(marked))


def keyed(
    log: DataFrame,
    shape: LakeShape,
    schema: TableSchema,
    cells: Sequence[Cell | None],
    images: bool,
) -> DataFrame:
    """Halves of ``log``, all under ``schema``, whose keys are typed, and whose values are still
    text: see :func:`cast_values`."""
    rows = log.where(F.col("op") != Op.TRUNCATE)
    old = [
        cast(column, F.col("key").getItem(place)) for place, column in enumerate(schema.key_columns)
    ]
    changes = rows.select(
        F.col("position").alias("pos"),
        F.col("tx_id").alias("tx"),
        F.col("commit_ts").alias("cts"),
        F.col("event_id").alias("eid"),
        *(
            key.value.cast(shape.types[place]).alias(f"k{i}")
            for i, (key, place) in enumerate(zip(old, shape.key, strict=True))
        ),
        *(_value(cells[place], shape.types[place]).alias(f"v{place}") for place in shape.key),
        *(_fingerprints(schema) if images else ()),
        *_RAW,
    )
    return _halves(changes, shape)


def cast_values(
    halves: DataFrame,
    shape: LakeShape,
    cells: Sequence[Cell | None],
    gaps: Sequence[int],
    *,
    done: Collection[int] = (),
) -> DataFrame:
    """The texts of ``halves`` as values, with their flags; ``done``: those that are cast already
    (:func:`cast_some`)."""
    places = [i for i in range(len(cells)) if i not in done]
    return cast_some(halves, shape, cells, gaps, places).drop(*_RAW)


def cast_some(
    halves: DataFrame,
    shape: LakeShape,
    cells: Sequence[Cell | None],
    gaps: Sequence[int],
    places: Collection[int],
) -> DataFrame:
    """The texts of the lake columns at ``places`` as values; the texts stay, for the others."""
    known = [name for name in halves.columns if name not in _RAW]
    # Two steps, so that the flags look at values that are there instead of parsing them again.
    values = halves.select(
        *known,
        *(
            _value(cells[i], shape.types[i]).alias(f"v{i}")
            for i in sorted(places)
            if i not in shape.key
        ),
        *(_gap(cells[i]).alias(f"n{i}") for i in gaps if i in places),
        *_RAW,
    )
    flags = [_judged(cell, F.col(f"v{i}")) if i in places else None for i, cell in enumerate(cells)]
    bits = {
        f"{flag}{word}": _bits(flags, word, which)
        for which, flag in enumerate(_FLAGS)
        for word in shape.words
    }
    for name in known:
        if name in bits:  # of places that were cast before
            bits[name] = F.col(name).bitwiseOR(bits[name])
    return values.select(
        *(name for name in values.columns if name not in bits),
        *(word.alias(name) for name, word in bits.items()),
    )


def _judged(cell: Cell | None, value: Expr) -> Flags | None:
    if cell is None:
        return None
    failed, adjusted = cast(cell.column, cell.text).judge(value)
    return (failed if cell.lost is None else failed | cell.lost, adjusted)


def _value(cell: Cell | None, type_: DataType) -> Expr:
    value = F.lit(None) if cell is None else cast(cell.column, cell.text).value
    return value.cast(type_)


def cells_of(
    shape: LakeShape, schema: TableSchema, share: SchemaShare, old_rows: bool = False
) -> list[Cell | None]:
    """One per lake column; None for a column this schema does not have."""
    slots = {column.name: slot for slot, column in enumerate(schema.columns) if column.taken}
    return [_cell(schema, slots.get(name), share, old_rows) for name in shape.names]


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a lake column's text comes from, and whether it is missing."""

    column: Column
    text: Expr
    gap: Expr
    lost: Expr | None = None
    """Whether the value was too large to be taken; None: none was."""


def _cell(schema: TableSchema, slot: int | None, share: SchemaShare, old_rows: bool) -> Cell | None:
    if slot is None:
        return None
    column = schema.columns[slot]
    if column.given is not None:
        return _given(column, column.given, old_rows)
    cell = _sent(column, slot, share)
    if not old_rows:
        return cell
    key = F.lit(None) if column.key is None else F.col("key").getItem(column.key)
    old = F.when(F.col("before").isNotNull(), F.col("before").getItem(slot)).otherwise(key)
    text = F.when(F.col("op") == Op.DELETE, old).otherwise(cell.text)
    return replace(cell, text=text)


def _given(column: Column, text: str, old_rows: bool) -> Cell:
    """A row older than the column has its default, except a delete, which may have its key only."""
    value = F.lit(text)
    if old_rows:
        value = F.when(F.col("op") != Op.DELETE, value)
    return Cell(column, value, F.lit(False))


def _sent(column: Column, slot: int, share: SchemaShare) -> Cell:
    after = F.col("after").getItem(slot)
    lost = _contains(too_large(slot)) if slot in share.too_large else None
    if slot not in share.unchanged:
        return Cell(column, after, F.lit(False), lost)
    not_sent = _contains(slot)
    if column.key is not None:
        # An out-of-line key that did not change: the old key has it.
        return Cell(
            column,
            F.when(not_sent, F.col("key").getItem(column.key)).otherwise(after),
            F.lit(False),
        )
    # With replica identity FULL the old row has what the new one leaves out.
    text = F.when(not_sent, F.col("before").getItem(slot)).otherwise(after)
    return Cell(column, text, not_sent & F.col("before").isNull(), lost)


def _contains(slot: int) -> Expr:
    return F.coalesce(F.array_contains("unchanged", slot), F.lit(False))


def _gapped(column: Column, names: tuple[str, ...]) -> bool:
    return column.key is None and column.taken and column.name in names


def _gap(cell: Cell | None) -> Expr:
    return F.lit(False) if cell is None else cell.gap


def _fingerprints(schema: TableSchema) -> list[Expr]:
    whole = F.transform(
        "after",
        lambda slot, place: F.when(
            F.array_contains(F.coalesce("unchanged", F.array().cast("array<int>")), place),
            F.get("before", place),
        ).otherwise(slot),
    )
    # A row of which a part was not sent at all looks like no other: it has no fingerprint.
    unsent = (F.size(F.coalesce("unchanged", F.array())) > 0) & F.col("before").isNull()
    return [
        fingerprint(F.col("before")).alias("bh"),
        F.when(~unsent, fingerprint(whole)).alias("ah"),
        F.lit(schema.schema_id).alias("sid"),
    ]


def _halves(rows: DataFrame, shape: LakeShape) -> DataFrame:
    """Split key changes in two; everything else stays one row."""
    new_key = [F.col(f"v{i}") for i in shape.key]
    old_key = [F.col(name) for name in shape.keys]
    moved = (F.col("op") == Op.UPDATE) & ~F.coalesce(
        _all(old.eqNullSafe(new) for old, new in zip(old_key, new_key, strict=True)), F.lit(True)
    )
    act = F.when(F.col("op") == Op.READ, F.lit("c")).otherwise(F.col("op"))
    halves = F.when(moved, F.array(F.lit("o"), F.lit("i"))).otherwise(F.array(act))
    exploded = rows.select("*", F.posexplode(halves).alias("seq", "act"))
    keys = [
        F.when(F.col("act") == "i", F.col(f"v{place}")).otherwise(F.col(name)).alias(name)
        for name, place in zip(shape.keys, shape.key, strict=True)
    ]
    rest = [name for name in exploded.columns if name not in shape.keys]
    return exploded.select(*rest, *keys) if shape.key else exploded


def _bits(flags: Sequence[Flags | None], word: int, which: int) -> Expr:
    """Bit i is set where column ``word * BITS + i`` has the flag."""
    own = flags[word * BITS : (word + 1) * BITS]
    terms = [
        F.when(flag[which], F.lit(1 << bit)).otherwise(F.lit(0)).cast("bigint")
        for bit, flag in enumerate(own)
        if flag is not None
    ]
    return reduce(Expr.bitwiseOR, terms, F.lit(0).cast("bigint"))


def _all(flags: Iterable[Expr]) -> Expr:
    return reduce(Expr.__and__, flags, F.lit(True))
