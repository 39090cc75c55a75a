"""The life of one row: every change of its key that the change log still holds, and the snapshot
in which readers first saw it.

Shows row values: a door must ask for more than a look at states (I9).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import EqualTo

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.tables import one_table
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError
from tidegate.lake import positions
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.positions import SnapshotInfo
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import TableId

TRUNCATE: Final = "t"
_COLUMNS: Final = (
    "epoch",
    "position",
    "tx_id",
    "commit_ts",
    "captured_at",
    "op",
    "schema_id",
    "key",
    "before",
    "after",
    "unchanged",
    "event_id",
)


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of a row."""

    event_id: str
    position: str
    op: str
    tx_id: int | None
    committed_at: datetime | None
    captured_at: datetime
    before: dict[str, str | None] | None
    after: dict[str, str | None] | None
    unchanged: tuple[str, ...]  # columns the source did not send
    snapshot_id: int | None  # of the lake table; None: not applied yet, or before its last sweep
    snapshot_at: datetime | None


@dataclass(frozen=True, slots=True)
class RowHistory:
    """Changes of one key, newest first."""

    table: str
    key: tuple[str | None, ...]
    since: datetime | None  # the change log reaches back to here; None: it is empty
    changes: tuple[RowChange, ...]


def row_history(
    pipeline: PipelineConfig, platform: PlatformConfig, table: str, key: Sequence[str | None]
) -> RowHistory:
    """Every change of ``key``: as the old key, or as the new one of a row that moved there.

    Reads the change log's rows of that table; a truncation concerns every key.
    """
    name = one_table(pipeline, table)
    catalog = open_catalog(platform, pipeline)
    log = load(catalog, ChangeLog(catalog, pipeline).identifier)
    if log is None:
        return RowHistory(name, tuple(key), None, ())
    history, seen = SchemaHistory(catalog, pipeline), _Seen.of(catalog, pipeline, name)
    equal: Any = EqualTo  # its signature confuses the type checker's pydantic plug-in
    since: datetime | None = None
    changes: list[RowChange] = []
    # Batch by batch, filtered as columns: a log has millions of rows, a key some.
    for rows in log.scan(equal("table", name), selected_fields=_COLUMNS).to_arrow_batch_reader():
        if rows.num_rows == 0:
            continue
        first = pc.min(rows["captured_at"]).as_py()
        since = first if since is None else min(since, first)
        found = _of_key(pa.Table.from_batches([rows]), name, key, history)
        changes += [_change(row, names, seen) for row, names in found]
    changes.sort(key=lambda change: change.position, reverse=True)
    return RowHistory(name, tuple(key), since, tuple(changes))


def _of_key(
    rows: pa.Table, table: str, key: Sequence[str | None], history: SchemaHistory
) -> list[tuple[dict[str, Any], list[str]]]:
    """Log rows that concern ``key``, each with its columns' names."""
    found = []
    wanted = list(key)
    for schema_id in pc.unique(rows["schema_id"]).to_pylist():
        schema = history.get(schema_id)
        names = [column.name for column in schema.columns]
        slots = [schema.columns.index(column) for column in schema.key_columns]
        if len(slots) != len(wanted):
            raise _wrong_key(table, [column.name for column in schema.key_columns])
        own = rows.filter(pc.equal(rows["schema_id"], schema_id))
        old = _all_equal([pc.list_element(own["key"], i) for i in range(len(wanted))], wanted, own)
        new = _all_equal([pc.list_element(own["after"], slot) for slot in slots], wanted, own)
        truncated = pc.equal(own["op"], TRUNCATE)
        mask = pc.or_(pc.or_(old, new), truncated)
        found += [(row, names) for row in own.filter(mask).to_pylist()]
    return found


def _all_equal(columns: list[Any], values: list[str | None], rows: pa.Table) -> Any:
    """Where every column has its value."""
    mask = pa.array([True] * rows.num_rows)
    for column, value in zip(columns, values, strict=True):
        same = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)
        mask = pc.and_(mask, same)
    return mask


def _wrong_key(table: str, columns: list[str]) -> ConfigError:
    if not columns:
        return ConfigError(
            "rows.no_key",
            f"{table} has no key",
            hint="only rows of a table with a key can be followed",
        )
    return ConfigError(
        "rows.wrong_key",
        f"a key of {table} has {len(columns)} part{'' if len(columns) == 1 else 's'}:"
        f" {', '.join(columns)}",
        hint="several parts are given as a JSON list of texts, in that order",
    )


class _Seen:
    """Which snapshot of main first held a position."""

    def __init__(self, snapshots: Sequence[SnapshotInfo]) -> None:
        self._own = [s for s in snapshots if s.on_main and s.position is not None]

    @classmethod
    def of(cls, catalog: Catalog, pipeline: PipelineConfig, table: str) -> _Seen:
        loaded = load(catalog, pipeline.target(TableId.parse(table)).identifier)
        return cls([] if loaded is None else positions.history(loaded))

    def first(self, at: Position) -> SnapshotInfo | None:
        own = [s for s in self._own if s.position and s.position.epoch == at.epoch]
        places = [s.position.place if s.position else "" for s in own]
        index = bisect_left(places, at.place)
        return own[index] if index < len(own) else None


def _change(row: dict[str, Any], names: list[str], seen: _Seen) -> RowChange:
    at = Position(row["epoch"], row["position"])
    snapshot = seen.first(at)
    return RowChange(
        event_id=row["event_id"],
        position=str(at),
        op=row["op"],
        tx_id=row["tx_id"],
        committed_at=row["commit_ts"],
        captured_at=row["captured_at"],
        before=_named(names, row["before"]),
        after=_named(names, row["after"]),
        unchanged=tuple(names[slot] for slot in row["unchanged"] or () if slot >= 0),
        snapshot_id=snapshot.snapshot_id if snapshot else None,
        snapshot_at=snapshot.committed_at if snapshot else None,
    )


def _named(names: list[str], values: list[str | None] | None) -> dict[str, str | None] | None:
    return None if values is None else dict(zip(names, values, strict=True))
