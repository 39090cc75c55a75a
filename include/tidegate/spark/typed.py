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
from tidegate.spark.casts.result import CastResult, Flags
from tidegate.spark.remembered import named, remembered
from tidegate.spark.survey import SchemaShare

BITS: Final = 32
"""Columns per bit set; a bigint would hold 63, a round number reads better."""
PUTS: Final = ("c", "u", "i")
_FLAGS: Final = ("bad", "adj")
"""Of columns that failed, and of those that were adjusted: in the order of ``Flags``."""
_RAW: Final = ("op", "key", "before", "after", "unchanged")
"""Of the log, until values are cast."""


def words(columns: int) -> int:
    """Bit sets that so many columns take."""
    return (columns + BITS - 1) // BITS


@dataclass(frozen=True, slots=True)
class LakeShape:
    """The lake table's own columns (without ``_cdc_`` ones), in order, and which are the key."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    key: tuple[int, ...]  # indexes into names, in key order

    @property
    def nameless(self) -> LakeShape:
        """What tables that differ in names only have in common."""
        return replace(self, names=("",) * len(self.names))

    @property
    def keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.key))]

    @property
    def values(self) -> list[str]:
        return [f"v{i}" for i in range(len(self.names))]

    @property
    def words(self) -> range:
        return range(words(len(self.names)))

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
    old = zip(schema.key_columns, shape.key, strict=True)
    changes = log.where(_is_row()).select(
        *_about(),
        *(_key(_nameless(key), i, shape.types[place]) for i, (key, place) in enumerate(old)),
        *(_value(cells[place], place, shape.types[place]) for place in shape.key),
        *(_fingerprints(schema) if images else ()),
        *named(*_RAW),
    )
    return _halves(changes, shape)


@remembered
def _is_row() -> Expr:
    return F.col("op") != Op.TRUNCATE


@remembered
def _about() -> tuple[Expr, ...]:
    names = {"position": "pos", "tx_id": "tx", "commit_ts": "cts", "event_id": "eid"}
    return tuple(F.col(name).alias(short) for name, short in names.items())


@remembered
def _key(column: Column, i: int, type_: DataType) -> Expr:
    return cast(column, F.col("key").getItem(i)).value.cast(type_).alias(f"k{i}")


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
        *named(*known),
        *(_value(cells[i], i, shape.types[i]) for i in sorted(places) if i not in shape.key),
        *(_gap(cells[i]).alias(f"n{i}") for i in gaps if i in places),
        *named(*_RAW),
    )
    bits = _words(tuple(cell if i in places else None for i, cell in enumerate(cells)))
    own = {  # places that were cast before have theirs
        name: F.col(name).bitwiseOR(word).alias(name) if name in known else word
        for name, word in bits.items()
    }
    rest = (name for name in values.columns if name not in own)
    return values.select(*named(*rest), *own.values())


@remembered
def _words(cells: tuple[Cell | None, ...]) -> dict[str, Expr]:
    """The bit sets of columns that failed and of those that were adjusted."""
    flags = [None if cell is None else _judged(cell, i) for i, cell in enumerate(cells)]
    return {
        f"{flag}{word}": _bits(flags, word, which).alias(f"{flag}{word}")
        for which, flag in enumerate(_FLAGS)
        for word in range(words(len(cells)))
    }


@remembered
def _judged(cell: Cell, place: int) -> Flags:
    failed, adjusted = _cast(cell).judge(F.col(f"v{place}"))
    lost = _lost(cell)
    return (failed if lost is None else failed | lost, adjusted)


@remembered
def _value(cell: Cell | None, place: int, type_: DataType) -> Expr:
    value = F.lit(None) if cell is None else _cast(cell).value
    return value.cast(type_).alias(f"v{place}")


@remembered
def _cast(cell: Cell) -> CastResult:
    return cast(cell.column, _text(cell))


def cells_of(
    shape: LakeShape, schema: TableSchema, share: SchemaShare, old_rows: bool = False
) -> list[Cell | None]:
    """One per lake column; None for a column this schema does not have."""
    slots = {column.name: slot for slot, column in enumerate(schema.columns) if column.taken}
    return [_cell(schema, slots.get(name), share, old_rows) for name in shape.names]


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a lake column's text comes from; what Spark makes of it is built once (without names,
    most columns of most tables are alike)."""

    column: Column  # nameless
    slot: int
    unsent: bool = False
    """At least one row did not send it."""
    large: bool = False
    """At least one value was too large to be taken."""
    old_rows: bool = False
    """A delete carries what is known of its row."""


def _cell(schema: TableSchema, slot: int | None, share: SchemaShare, old_rows: bool) -> Cell | None:
    if slot is None:
        return None
    unsent, large = slot in share.unchanged, slot in share.too_large
    return Cell(_nameless(schema.columns[slot]), slot, unsent, large, old_rows)


def _nameless(column: Column) -> Column:
    return replace(column, name="", source_type="", number=None, nullable=True)


@remembered
def _text(cell: Cell) -> Expr:
    if cell.column.given is not None:
        # A row older than the column has its default; a delete may have its key only.
        value = F.lit(cell.column.given)
        return F.when(F.col("op") != Op.DELETE, value) if cell.old_rows else value
    sent = _sent(cell)
    if not cell.old_rows:
        return sent
    key = F.lit(None) if cell.column.key is None else F.col("key").getItem(cell.column.key)
    old = F.when(F.col("before").isNotNull(), F.col("before").getItem(cell.slot)).otherwise(key)
    return F.when(F.col("op") == Op.DELETE, old).otherwise(sent)


def _sent(cell: Cell) -> Expr:
    after = F.col("after").getItem(cell.slot)
    if not cell.unsent:
        return after
    # An out-of-line key that did not change is in the old key; with replica identity FULL the old
    # row has what the new one leaves out.
    key = cell.column.key
    older = F.col("before").getItem(cell.slot) if key is None else F.col("key").getItem(key)
    return F.when(_contains(cell.slot), older).otherwise(after)


@remembered
def _gap(cell: Cell | None) -> Expr:
    """Whether the value is missing."""
    if cell is None or cell.column.given is not None:
        return F.lit(False)
    if not cell.unsent or cell.column.key is not None:
        return F.lit(False)
    return _contains(cell.slot) & F.col("before").isNull()


@remembered
def _lost(cell: Cell) -> Expr | None:
    """Whether the value was too large to be taken; None: none was."""
    key_of_old = cell.unsent and cell.column.key is not None
    if not cell.large or key_of_old or cell.column.given is not None:
        return None
    return _contains(too_large(cell.slot))


def _contains(slot: int) -> Expr:
    return F.coalesce(F.array_contains("unchanged", slot), F.lit(False))


def _gapped(column: Column, names: tuple[str, ...]) -> bool:
    return column.key is None and column.taken and column.name in names


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
    exploded = rows.select("*", _split(shape.key))
    rest = [name for name in exploded.columns if name not in shape.keys]
    return exploded.select(*named(*rest), *_addressed(shape.key)) if shape.key else exploded


@remembered
def _split(key: tuple[int, ...]) -> Expr:
    moved = (F.col("op") == Op.UPDATE) & ~F.coalesce(
        _all(F.col(f"k{i}").eqNullSafe(F.col(f"v{place}")) for i, place in enumerate(key)),
        F.lit(True),
    )
    act = F.when(F.col("op") == Op.READ, F.lit("c")).otherwise(F.col("op"))
    halves = F.when(moved, F.array(F.lit("o"), F.lit("i"))).otherwise(F.array(act))
    return F.posexplode(halves).alias("seq", "act")


@remembered
def _addressed(key: tuple[int, ...]) -> tuple[Expr, ...]:
    """The key of the row a half is about."""
    moved_in = F.col("act") == "i"
    return tuple(
        F.when(moved_in, F.col(f"v{place}")).otherwise(F.col(f"k{i}")).alias(f"k{i}")
        for i, place in enumerate(key)
    )


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
