"""A change as Debezium's PostgreSQL connector would send it: the value's payload, in JSON's terms.

An update that moves a row to another key is two events there, a delete and a create; so it is here.
``source.lsn`` is the commit's LSN (our positions are), and ``transaction`` is null, as it is there
unless ``provide.transaction.metadata`` is set.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from tidegate import __version__
from tidegate.codecs.debezium_values import value
from tidegate.envelope.change import Change, Op, Row
from tidegate.names import TableId

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""What stands in place of a value the source did not send (``unavailable.value.placeholder``)."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def envelopes(change: Change, *, database: str, name: str) -> list[dict[str, Any]]:
    """The events of one change; ``name`` is Debezium's ``topic.prefix``."""
    if not change.moves:
        return [_envelope(change, change.op, _before(change), _after(change), database, name)]
    old = _before(change) or _key_only(change)
    return [
        _envelope(change, Op.DELETE, old, None, database, name),
        _envelope(change, Op.CREATE, None, _after(change), database, name),
    ]


def key(change: Change) -> dict[str, Any] | None:
    """The event's key: that of the row addressed."""
    if change.key is None:
        return None
    columns = {column.name: column for column in change.key_columns}
    return {name: value(columns[name], text) for name, text in change.key.items()}


def _envelope(
    change: Change,
    op: Op,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    database: str,
    name: str,
) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "source": _source(change, database, name),
        "transaction": None,
        "op": op.value,
        **_times(change.captured_at),
    }


def _source(change: Change, database: str, name: str) -> dict[str, Any]:
    table = TableId.parse(change.table)
    lsn = change.position.lsn
    times = _times(change.commit_ts or change.captured_at)
    return {
        "version": f"tidegate-{__version__}",
        "connector": "postgresql",
        "name": name,
        "ts_ms": times["ts_ms"],
        "snapshot": "true" if change.op is Op.READ else "false",
        "db": database,
        "sequence": json.dumps([None, str(lsn)], separators=(",", ":")),
        "ts_us": times["ts_us"],
        "ts_ns": times["ts_ns"],
        "schema": table.schema,
        "table": table.name,
        "txId": change.tx_id,
        "lsn": lsn,
        "xmin": None,
    }


def _times(moment: datetime) -> dict[str, int]:
    since = moment - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return {"ts_ms": micros // 1000, "ts_us": micros, "ts_ns": micros * 1000}


def _before(change: Change) -> dict[str, Any] | None:
    """The old row where the source sent it; of a deleted one at least its key."""
    if change.before is not None:
        return _values(change, change.before)
    return _key_only(change) if change.op is Op.DELETE else None


def _key_only(change: Change) -> dict[str, Any] | None:
    known = change.key
    if known is None:
        return None
    return _values(change, {c.name: known.get(c.name) for c in change.schema.columns})


def _after(change: Change) -> dict[str, Any] | None:
    after = change.after
    if after is None:
        return None
    unsent = {*change.unchanged, *change.left_out}
    return _values(change, after) | dict.fromkeys(unsent, UNAVAILABLE)


def _values(change: Change, row: Row) -> dict[str, Any]:
    return {column.name: value(column, row.get(column.name)) for column in change.schema.columns}
