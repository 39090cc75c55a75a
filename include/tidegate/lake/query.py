"""Time travel without a JVM: rows of a lake table at a snapshot, a moment, or now."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression, Not, Or, Reference, UnboundPredicate
from pyiceberg.expressions.parser import parse
from pyiceberg.schema import Schema
from pyiceberg.table import ALWAYS_TRUE, Table
from pyiceberg.table.snapshots import Snapshot
from pyparsing import ParseException

from tidegate.errors import ConfigError
from tidegate.lake import positions
from tidegate.lake.variant_files import look_past_variants
from tidegate.lake.variant_type import variants

DEFAULT_LIMIT: Final = 20


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Rows and where they stand."""

    snapshot_id: int | None  # None: the table has no snapshot yet
    committed_at: datetime | None
    position: str | None
    rows: pa.Table


def query(
    table: Table,
    *,
    snapshot_id: int | None = None,
    as_of: datetime | None = None,
    columns: Sequence[str] = (),
    where: str | None = None,
    limit: int | None = DEFAULT_LIMIT,
) -> QueryResult:
    """Scan ``table`` at ``snapshot_id``, or as readers saw it at ``as_of``, or as it is now.

    ``where`` is a filter in PyIceberg's text form (``id >= 10 AND country = 'DE'``). ``as_of``
    follows what ``main`` was at the time, so half-written branches are never seen (I5). Variants,
    which PyIceberg does not read, are left out.
    """
    _check_columns(table, columns)
    snapshot = _snapshot(table, snapshot_id, as_of)
    try:
        row_filter = ALWAYS_TRUE if where is None else parse(where)
        scan = table.scan(snapshot_id=snapshot.snapshot_id if snapshot else None, limit=limit)
        known = scan.projection()
        _check_readable(known, {*columns, *_asked(row_filter)})
        look_past_variants()
        rows = scan.filter(row_filter).select(*(columns or _readable(known))).to_arrow()
    except (ParseException, ValueError) as error:
        if where is None:
            raise
        raise ConfigError(
            "query.where",
            "the filter cannot be read",
            hint="write comparisons of columns with literals: id >= 10 AND country = 'DE'",
        ) from error
    if snapshot is None:
        return QueryResult(None, None, None, rows)
    info = next(i for i in positions.history(table) if i.snapshot_id == snapshot.snapshot_id)
    position = None if info.position is None else str(info.position)
    return QueryResult(snapshot.snapshot_id, info.committed_at, position, rows)


def _snapshot(table: Table, snapshot_id: int | None, as_of: datetime | None) -> Snapshot | None:
    if snapshot_id is not None and as_of is not None:
        raise ConfigError(
            "query.snapshot", "a snapshot id and a moment were given", hint="give one of them"
        )
    if snapshot_id is not None:
        found = table.metadata.snapshot_by_id(snapshot_id)
        if found is None:
            raise ConfigError(
                "query.snapshot",
                f"{'.'.join(table.name())} has no snapshot {snapshot_id}",
                hint="list them with `tidegate lakehouse snapshots`; old ones expire",
            )
        return found
    if as_of is None:
        return table.current_snapshot()
    moment = as_of if as_of.tzinfo else as_of.replace(tzinfo=UTC)
    found = table.snapshot_as_of_timestamp(int(moment.timestamp() * 1000))
    if found is None:
        raise ConfigError(
            "query.snapshot",
            f"{'.'.join(table.name())} has no retained snapshot at or before {moment.isoformat()}",
            hint="list them with `tidegate lakehouse snapshots`; old ones expire",
        )
    return found


def _readable(schema: Schema) -> list[str]:
    left_out = variants(schema)
    return [field.name for field in schema.fields if field.name not in left_out]


def _check_readable(schema: Schema, columns: Collection[str]) -> None:
    """PyIceberg would take a variant for a column that is null in every row."""
    documents = sorted(variants(schema).intersection(columns))
    if documents:
        raise ConfigError(
            "query.variant",
            f"{', '.join(documents)}: variants cannot be read here, PyIceberg does not know them",
            hint="name other columns, or read the table with Spark or DuckDB",
        )


def _asked(row_filter: BooleanExpression) -> frozenset[str]:
    """The columns of a filter."""
    match row_filter:
        case Not():
            return _asked(row_filter.child)
        case And() | Or():
            return _asked(row_filter.left) | _asked(row_filter.right)
        case UnboundPredicate(term=Reference(name=name)):
            return frozenset({name})
    return frozenset()


def _check_columns(table: Table, columns: Sequence[str]) -> None:
    known = [field.name for field in table.schema().fields]
    for name in columns:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            guess = f", did you mean {near[0]}?" if near else ""
            raise ConfigError(
                "query.column",
                f"{'.'.join(table.name())} has no column {name}{guess}",
                hint=f"there are {', '.join(known)}",
            )
