"""From the table that exists to the schemas of the source: what the lake does, or refuses (I8).

One place decides for apply and sweep. Policies are asked about each step from schema to schema;
the lake's own columns say what must be done, so that a run that died half-way is gone on with
(I3). Columns that left the source stay in the lake: history is not dropped, new rows have null
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyiceberg.schema import Schema

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.lake.arrivals import arrivals
from tidegate.lake.columns import LakeColumn, can_be_keyless, cdc_columns, columns, qualified
from tidegate.lake.lineage import Lineage
from tidegate.lake.rekey import rekey_sql
from tidegate.names import CDC_PREFIX, quote_spark
from tidegate.schema.compatibility import verdict
from tidegate.schema.diff import Change, ChangeKind, changes, match
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind, LogicalType, TextRule, is_wider, parse_type

POLICY_OF: Final = {
    ChangeKind.ADD: "add",
    ChangeKind.WIDEN: "widen",
    ChangeKind.RENAME: "rename",
    ChangeKind.RELAX: "relax",
    ChangeKind.DROP: "drop",
    ChangeKind.NARROW: "narrow",
    ChangeKind.RETYPE: "retype",
    ChangeKind.REPLACE: "retype",
    ChangeKind.RECREATE: "recreate",
}
"""The policy that decides about a kind of change. The key is not among them: the lake's own is
looked at, whatever the log said before."""
_TEXT_OF: Final = {
    Kind.BOOLEAN: TextRule.PG_BOOL,
    Kind.DATE: TextRule.PG_DATETIME,
    Kind.TIMESTAMP: TextRule.PG_DATETIME,
    Kind.TIMESTAMPTZ: TextRule.PG_DATETIME,
    Kind.BINARY: TextRule.PG_BYTEA,
    Kind.LIST: TextRule.PG_ARRAY,
}


class SchemaConflict(Exception):
    """A version that the lake does not follow without someone's word."""

    def __init__(self, index: int, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.index = index
        self.reasons = tuple(reasons)


@dataclass(frozen=True, slots=True)
class Evolution:
    """What makes the lake's columns hold rows of some versions."""

    statements: tuple[str, ...]
    schemas: Mapping[int, TableSchema]
    """By version: its columns (in log order) under the lake's names and in the lake's types, then
    those that came later and whose value older rows have by default (``given``)."""
    fills: tuple[Column, ...] = ()
    """Lake columns in which every row the lake has now must get a value (``given``)."""

    @property
    def needed(self) -> bool:
        return bool(self.statements)


@dataclass(slots=True)
class _Field:
    type: LogicalType | None  # None: no type of ours
    text: str
    required: bool
    identifier: bool


def evolve(
    existing: Schema,
    lineage: Lineage,
    wanted: Sequence[int],
    *,
    base: int | None,
    sweeping: bool = False,
    emptied: str = "",
) -> Evolution:
    """What must happen before rows of the versions ``wanted`` fit; :class:`SchemaConflict` if one
    does not.

    ``base`` is the version in force where the lake table stands (None: not known): policies are
    asked about what came after it. A sweep reads every row anew, so a table that was made anew is
    no obstacle to it. ``emptied`` is the place of a TRUNCATE: no row is older.
    """
    lake = _Lake(existing, lineage, sweeping, emptied)
    first = 0 if base is None else base + 1
    last = max(wanted)
    for index in sorted({*range(first, last + 1), *wanted}):
        if index >= first:
            lake.permit(index)
            lake.set_aside(index)
        if index in wanted:
            lake.ensure(index)
    newest = max(last, first - 1)
    return Evolution(
        tuple(lake.statements),
        {index: lake.fitted(index, newest) for index in wanted},
        tuple(lake.given(first, last)),
    )


class _Lake:
    """The lake's columns, as they are after ``statements``."""

    def __init__(self, existing: Schema, lineage: Lineage, sweeping: bool, emptied: str) -> None:
        self.lineage = lineage
        self.target: LakeTarget = lineage.target
        self.sweeping = sweeping
        self.emptied = emptied
        self.statements: list[str] = []
        self.found = frozenset(field.name for field in existing.fields)
        identifiers = existing.identifier_field_names()
        self.fields = {
            field.name: _Field(
                parse_type(str(field.field_type)),
                str(field.field_type),
                field.required,
                field.name in identifiers,
            )
            for field in existing.fields
        }

    def permit(self, index: int) -> None:
        """Ask the policies about the step to a version, unless someone approved it."""
        told = self.lineage.step(index).changes if index else tuple(self._unlike_lake())
        approved = self.lineage.versions[index].approval is not None
        crossed = self.lineage.step(index).crossed if index else {}
        reasons = [
            f"{old} is called {new} now, a name that another column had: only a sweep writes every"
            " row under it"
            for new, old in crossed.items()
            if not self.sweeping
        ]
        reasons += [f"{change}" for change in told if self._needs_new_key(change, approved)]
        if approved and not reasons:
            return
        settled = crossed if self.sweeping else {}
        reasons += [f"{c}" for c in told if c.column not in settled and self._held(c)]
        reasons += self._unanswered(index, told)
        past = [self.lineage.schema(at) for at in range(index)]
        judged = verdict(self.target.compatibility, past, self.lineage.schema(index))
        reasons += [f"not {judged.mode}: {reason}" for reason in judged.reasons]
        if reasons:
            raise SchemaConflict(index, reasons)

    def set_aside(self, index: int) -> None:
        """Keep older columns under another name where new ones take theirs."""
        for name, aside in (self.lineage.step(index).asides if index else {}).items():
            old = self._lake_name(index - 1, name, but=aside)
            if aside not in self.fields and old is not None:
                self._rename(old, aside)

    def ensure(self, index: int) -> None:
        """Have a lake column for every column of a version."""
        schema = self.lineage.schema(index)
        upsert = self.target.write_mode is WriteMode.UPSERT
        if upsert and not schema.key_columns and not can_be_keyless(self.target):
            gone = "key: the source's table has none any more, which soft_delete needs"
            raise SchemaConflict(index, [gone])
        wanted = {c.name: c for c in columns(schema, self.target)}  # and check names and key
        wrong = [
            line
            for column in schema.columns
            if (line := self._column(index, column, wanted[column.name])) is not None
        ]
        wrong += self._key_change(index, schema)
        wrong += self._relaxed(index, schema)
        wrong += self._mode_lines()
        if wrong:
            raise SchemaConflict(index, wrong)

    def fitted(self, index: int, newest: int) -> TableSchema:
        """A version's columns as the lake takes them, and those that came up to ``newest``."""
        schema = self.lineage.schema(index)
        own = tuple(self._fit(index, c) for c in schema.columns)
        names = {column.name for column in own}
        later = (column for column in self.given(index + 1, newest) if column.name not in names)
        return replace(schema, columns=(*own, *later))

    def given(self, first: int, last: int) -> Iterator[Column]:
        """Columns that came with the versions ``first`` to ``last`` with a value for older rows; a
        sweep reads every row."""
        found = () if self.sweeping else arrivals(self.lineage, first, last)
        for arrival in found:
            column = self._fit(arrival.index, arrival.column)
            if arrival.text is not None and column.taken:
                yield replace(column, given=arrival.text, key=None)

    def _held(self, change: Change) -> bool:
        if change.kind is ChangeKind.CANDIDATE:
            return True
        if change.kind is ChangeKind.RECREATE and self.sweeping:
            return False
        name = POLICY_OF.get(change.kind)
        if change.kind is ChangeKind.REPLACE and change.column not in self.fields:
            name = "add"  # the lake never had the one that it follows
        return name is not None and getattr(self.target.schema_changes, name) == "hold"

    def _needs_new_key(self, change: Change, approved: bool) -> bool:
        """Rows of the lake are told apart by the old key: only a sweep writes them under another.
        Where the lake names its key, that is what counts (:meth:`_key_change`)."""
        if change.kind is not ChangeKind.KEY or self.target.write_mode is not WriteMode.UPSERT:
            return False
        unnamed = not any(field.identifier for field in self.fields.values())
        return unnamed and not (self.sweeping and approved)

    def _unanswered(self, index: int, told: Sequence[Change]) -> Iterator[str]:
        """What became of older rows, where neither the log nor the catalog tells it."""
        if self.sweeping or self.emptied >= self.lineage.versions[index].since.place:
            return
        if self.target.schema_changes.add != "ignore":
            yield from (
                f"{arrival.column.name} was added and the table rewritten: what older rows have in"
                " it was not sent, only a sweep brings it"
                for arrival in arrivals(self.lineage, index, index)
                if arrival.text is None
            )
        if self.target.schema_changes.retype == "hold":
            yield from (
                f"{change}, and rows were rewritten: only a sweep brings them"
                for change in told
                if change.kind is ChangeKind.RESTATE
                and self.lineage.rewritten(index, str(change.column))
            )

    def _unlike_lake(self) -> Iterator[Change]:
        """Nothing is known of the past: the lake's columns stand for it."""
        new = self.lineage.schema(0)
        rows = tuple(
            Column(name, field.text, field.type, TextRule.PLAIN, nullable=not field.required)
            for name, field in self.fields.items()
            if field.type is not None and not name.startswith(CDC_PREFIX)
        )
        old = TableSchema(new.table, rows)
        kinds = (ChangeKind.ADD, ChangeKind.CANDIDATE)
        yield from (c for c in changes(old, new, match(old, new)) if c.kind in kinds)

    def _lake_name(self, index: int, name: str, but: str | None = None) -> str | None:
        """The newest of a column's names that the lake has."""
        later = self.lineage.later_names(index, name)
        return next((n for n in reversed(later) if n in self.fields and n != but), None)

    def _column(self, index: int, column: Column, wanted: LakeColumn) -> str | None:
        """Have one column; the line of the diff if that cannot be."""
        name = self._lake_name(index, column.name)
        if name is None:
            earlier = self.lineage.earlier_names(index, column.name)
            old = next((n for n in earlier if n in self.fields), None)
            if old is None:
                if not self._leaves_out("add", index):
                    self._add(wanted)
                return None
            self._rename(old, column.name)
            name = column.name
        return self._typed(index, column, name)

    def _typed(self, index: int, column: Column, name: str) -> str | None:
        if self._left_out(index, column):
            return None
        field = self.fields[name]
        type_ = self.lineage.casts(index).get(column.name, column.type)
        if field.type is not None and is_wider(field.type, type_):
            if not self._leaves_out("widen", index):
                self._alter(f"ALTER COLUMN {quote_spark(name)} TYPE {type_.spark}")
                field.type, field.text = type_, str(type_)
            return None
        if _holds(field, type_) or self._leaves_out("retype", index):
            return None
        return (
            f"column {name}: the lake has {field.text}, the source now gives"
            f" {type_} ({column.source_type})"
        )

    def _fit(self, index: int, column: Column) -> Column:
        name = self._lake_name(index, column.name)
        if name is None:
            return replace(column, taken=False)
        if self._left_out(index, column):
            return replace(column, name=name, taken=False)
        type_ = self.lineage.casts(index).get(column.name, column.type)
        field = self.fields[name]
        if field.type is not None and is_wider(field.type, type_):
            type_ = field.type  # widen: ignore
        elif not _holds(field, type_):
            return replace(column, name=name, taken=False)
        return replace(_cast(column, type_), name=name)

    def _left_out(self, index: int, column: Column) -> bool:
        return column.name in self.lineage.left_out(index) and column.name in self.found

    def _leaves_out(self, kind: str, index: int) -> bool:
        if self.lineage.versions[index].approval is not None:
            return False
        return bool(getattr(self.target.schema_changes, kind) == "ignore")

    def _key_change(self, index: int, schema: TableSchema) -> Iterator[str]:
        if self.target.write_mode is not WriteMode.UPSERT:
            return
        old = {name for name, field in self.fields.items() if field.identifier}
        new = self._key_names(index)
        if not old or old == new:
            return
        if not (self.sweeping and self._key_approved(index, new)):
            yield f"key: the lake is keyed by {_names(old)}, the source now by {_names(new)}"
            return
        fitted = replace(schema, columns=tuple(self._fit(index, c) for c in schema.columns))
        required = {name for name, field in self.fields.items() if field.required}
        self.statements += rekey_sql(self.target, fitted, old, required)
        named = new if new <= required else set()
        for name, field in self.fields.items():
            field.identifier = name in named

    def _key_names(self, index: int) -> set[str]:
        columns = self.lineage.schema(index).key_columns
        return {self._lake_name(index, c.name) or c.name for c in columns}

    def _key_approved(self, index: int, key: set[str]) -> bool:
        """Whether someone let this key in, with this version or one before it."""
        return any(
            self.lineage.versions[at].approval is not None and self._key_names(at) == key
            for at in range(index + 1)
        )

    def _relaxed(self, index: int, schema: TableSchema) -> Iterator[str]:
        """A required column that left the source, or its key: nothing can be required of it."""
        keyed = {self._lake_name(index, column.name) for column in schema.key_columns}
        taken = {self._lake_name(index, column.name) for column in schema.columns}
        for name, field in self.fields.items():
            if name in keyed or name.startswith(CDC_PREFIX) or not field.required:
                continue
            if name in taken and field.identifier:
                continue  # the lake's key, which the log does not send now (_key_change)
            if field.identifier:
                yield f"column {name}: part of the lake's key, gone from the source"
                continue
            self._alter(f"ALTER COLUMN {quote_spark(name)} DROP NOT NULL")
            field.required = False

    def _mode_lines(self) -> Iterator[str]:
        own = {column.name for column in cdc_columns(self.target)}
        there = {name for name in self.fields if name.startswith(CDC_PREFIX)}
        soft = " with soft_delete" if self.target.soft_delete else ""
        for name in sorted(own ^ there):
            how = "is missing" if name in own else "is there"
            yield (
                f"column {name} {how}: the table was made for another write mode than"
                f" {self.target.write_mode}{soft}"
            )

    def _add(self, column: LakeColumn) -> None:
        # A new column is empty in every old row, so it cannot be required, key or not.
        self._alter(f"ADD COLUMNS ({replace(column, nullable=True).ddl})")
        self.fields[column.name] = _Field(column.type, str(column.type), False, False)

    def _rename(self, old: str, new: str) -> None:
        self._alter(f"RENAME COLUMN {quote_spark(old)} TO {quote_spark(new)}")
        self.fields = {new if name == old else name: field for name, field in self.fields.items()}

    def _alter(self, what: str) -> None:
        self.statements.append(f"ALTER TABLE {qualified(self.target)} {what}")


def _holds(field: _Field, type_: LogicalType) -> bool:
    """Whether the lake's type is, or holds every value of, ``type_``."""
    return field.type == type_ or (field.type is not None and is_wider(type_, field.type))


def _cast(column: Column, type_: LogicalType) -> Column:
    """The column's text, read as another type."""
    if column.type == type_:
        return column
    number = type_.kind in (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL)
    rule = TextRule.PG_NUMBER if number else _TEXT_OF.get(type_.kind, column.rule)
    return replace(column, type=type_, rule=rule, recast=True)


def _names(names: set[str]) -> str:
    return "(" + ", ".join(sorted(names)) + ")" if names else "no column"
