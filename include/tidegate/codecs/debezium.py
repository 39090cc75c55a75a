"""A change as Debezium's connector of its source would send it: the payload, in JSON's terms.

An update that moves a row to another key is two events there, a delete and a create; so it is here.
``transaction`` is null, as it is there unless ``provide.transaction.metadata`` is set. Of a
PostgreSQL source, ``lsn`` is the commit's LSN (our positions are). ``tests/integration/connectors/
debezium`` compares with what Debezium itself said, field by field.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from tidegate import __version__
from tidegate.codecs import debezium_mysql, debezium_values
from tidegate.config.source_types import MYSQL, POSTGRES
from tidegate.envelope.change import Change, Op, Row
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.table import Column

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""What stands in place of a value the source did not send (``unavailable.value.placeholder``)."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_VALUES: Final[dict[str, Callable[[Column, str | None], Any]]] = {
    POSTGRES: debezium_values.value,
    MYSQL: debezium_mysql.value,
}


class Envelopes:
    """Events of one pipeline's changes; ``name`` is Debezium's ``topic.prefix``."""

    def __init__(self, source_type: str, *, database: str, name: str) -> None:
        if source_type not in _VALUES:
            raise ConfigError(
                "consume.no_envelope",
                f"Debezium has no form for changes of a {source_type} source",
                hint=f"only for {' and '.join(sorted(_VALUES))}; leave --format debezium away",
            )
        self._mysql = source_type == MYSQL
        self._value = _VALUES[source_type]
        self._database = database
        self._name = name

    def events(self, change: Change) -> list[dict[str, Any]]:
        """What one change is told by."""
        if not change.moves:
            return [self._event(change, change.op, self._before(change), self._after(change))]
        old = self._before(change) or self._key_only(change)
        return [
            self._event(change, Op.DELETE, old, None),
            self._event(change, Op.CREATE, None, self._after(change)),
        ]

    def key(self, change: Change) -> dict[str, Any] | None:
        """The event's key: that of the row addressed."""
        if change.key is None:
            return None
        columns = {column.name: column for column in change.key_columns}
        return {name: self._value(columns[name], text) for name, text in change.key.items()}

    def _event(
        self,
        change: Change,
        op: Op,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
    ) -> dict[str, Any]:
        return {
            "before": before,
            "after": after,
            "source": self._source(change),
            "transaction": None,
            "op": op.value,
            **_times(change.captured_at),
        }

    def _source(self, change: Change) -> dict[str, Any]:
        times = _times(change.commit_ts or change.captured_at)
        own = (
            debezium_mysql.source(change)
            if self._mysql
            else _postgres_source(change, self._database)
        )
        return {
            "version": f"tidegate-{__version__}",
            "name": self._name,
            "snapshot": "true" if change.op is Op.READ else "false",
            **times,
            **own,
        }

    def _before(self, change: Change) -> dict[str, Any] | None:
        """The old row where the source sent it; of a deleted one at least its key."""
        if change.before is not None:
            return self._values(change, change.before)
        return self._key_only(change) if change.op is Op.DELETE else None

    def _key_only(self, change: Change) -> dict[str, Any] | None:
        known = change.key
        if known is None:
            return None
        return self._values(change, {c.name: known.get(c.name) for c in change.schema.columns})

    def _after(self, change: Change) -> dict[str, Any] | None:
        after = change.after
        if after is None:
            return None
        unsent = {*change.unchanged, *change.left_out}
        return self._values(change, after) | dict.fromkeys(unsent, UNAVAILABLE)

    def _values(self, change: Change, row: Row) -> dict[str, Any]:
        columns = change.schema.columns
        return {column.name: self._value(column, row.get(column.name)) for column in columns}


def _postgres_source(change: Change, database: str) -> dict[str, Any]:
    table, lsn = TableId.parse(change.table), change.position.lsn
    return {
        "connector": "postgresql",
        "db": database,
        "sequence": json.dumps([None, str(lsn)], separators=(",", ":")),
        "schema": table.schema,
        "table": table.name,
        "txId": change.tx_id,
        "lsn": lsn,
        "xmin": None,
        "origin": None,
        "origin_lsn": None,
    }


def _times(moment: datetime) -> dict[str, int]:
    since = moment - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return {"ts_ms": micros // 1000, "ts_us": micros, "ts_ns": micros * 1000}
