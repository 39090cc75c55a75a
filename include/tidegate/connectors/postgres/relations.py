"""A relation message becomes a table schema.

The message names columns and types but neither attribute numbers nor nullability nor the primary
key under REPLICA IDENTITY FULL; those come from the live catalog where it still agrees. Numbers
come from the source's own message where there was one (``ddl_messages.py``).
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.connectors.postgres import discover
from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.ddl_messages import Told
from tidegate.connectors.postgres.discover import Attribute
from tidegate.connectors.postgres.pgoutput import RelationColumn, RelationMessage
from tidegate.connectors.postgres.type_catalog import TypeCatalog
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema

FULL = "f"


class Relations:
    """Describes the tables of one stream; ``None`` for those the pipeline does not take."""

    def __init__(self, connection: Connection, tables: tuple[TableId, ...]) -> None:
        self._connection = connection
        self._tables = frozenset(tables)
        self._told: dict[int, Told] = {}
        self._own = {oid: table for table, oid in discover.numbers(connection, tables).items()}

    def astray(self, message: RelationMessage) -> TableId | None:
        """The table that ``message`` has another name for: it was renamed, and its rows come
        under a name that nobody asked for."""
        return self._own.get(message.relid) if message.table not in self._tables else None

    def tell(self, told: Told) -> TableSchema | None:
        """What the source itself says of a table; None where the log may send other columns."""
        self._told[told.relid] = told
        return None if told.generated else self(told.message)

    def __call__(self, message: RelationMessage) -> TableSchema | None:
        if message.table not in self._tables:
            return None
        self._own = {oid: table for oid, table in self._own.items() if table != message.table}
        self._own[message.relid] = message.table
        live = discover.relation(self._connection, message.table)
        numbers = self._numbers(message, live)
        names = {a.name: a for a in live.attributes} if live else {}
        places = {a.number: a for a in live.attributes} if live else {}
        types = TypeCatalog(self._connection)
        types.load(column.type_oid for column in message.columns)
        keys = {name: place for place, name in enumerate(self._key(message, live))}
        columns = []
        for sent, number in zip(message.columns, numbers, strict=True):
            own = names.get(sent.name) if number is None else places.get(number)
            column = self._column(sent, own, types, keys.get(sent.name))
            columns.append(replace(column, number=number))
        return TableSchema(message.table, tuple(columns), message.relid)

    def _numbers(
        self, message: RelationMessage, live: discover.Relation | None
    ) -> tuple[int | None, ...]:
        told = self._told.get(message.relid)
        if told is not None:
            sent = [(c.name, c.type_oid, c.typmod) for c in message.columns]
            if sent == [(c.name, c.type_oid, c.typmod) for c in told.message.columns]:
                return tuple(told.numbers[column.name] for column in message.columns)
        whole = live is None or not discover.has_column_list(self._connection, live.oid)
        return column_numbers(message, live, whole=whole)

    def _key(self, message: RelationMessage, live: discover.Relation | None) -> tuple[str, ...]:
        """What identifies a row in this log: the identity columns, in the index's order."""
        sent = {column.name for column in message.columns}
        if message.replica_identity == FULL:
            # Whatever identifies rows by now: under FULL it was the primary key.
            primary = live.primary_key if live else ()
            return primary if sent.issuperset(primary) else ()
        known = live.key if live else ()
        flagged = tuple(column.name for column in message.columns if column.identity)
        return known if set(known) == set(flagged) else flagged

    def _column(
        self,
        column: RelationColumn,
        live: Attribute | None,
        types: TypeCatalog,
        key: int | None,
    ) -> Column:
        same = live is not None and (live.type, live.typmod) == (column.type_oid, column.typmod)
        dimensions = live.dimensions if live is not None and same else 1
        mapped = types.map(column.type_oid, column.typmod, dimensions)
        return Column(
            name=column.name,
            source_type=live.printed if live is not None and same else self._printed(column),
            type=mapped.type,
            rule=mapped.rule,
            policy=mapped.policy,
            nullable=not (live is not None and same and live.not_null),
            key=key,
        )

    def _printed(self, column: RelationColumn) -> str:
        row = self._connection.execute(
            "SELECT pg_catalog.format_type(%s, %s)", (column.type_oid, column.typmod)
        ).fetchone()
        return str(row[0]) if row else "unknown"


def column_numbers(
    message: RelationMessage, live: discover.Relation | None, *, whole: bool = True
) -> tuple[int | None, ...]:
    """The columns' attribute numbers, as far as they are certain.

    The message is of the past, the catalog of now. Numbers are given in order and never again. So
    a table that never lost a column has numbered what it sent from 1 on, whatever the columns are
    called today (if it sends the ``whole`` of them); otherwise the catalog must list just the
    columns of the message, and must have done so before its transaction began: a column that was
    dropped and added again reads the same.
    """
    nobody = (None,) * len(message.columns)
    if live is None or live.oid != message.relid:
        return nobody
    numbers = [a.number for a in live.attributes]
    whole = whole and not any(a.generated for a in live.attributes)
    if whole and len(numbers) == max(numbers, default=0) >= len(message.columns):
        return tuple(range(1, len(message.columns) + 1))
    sent = [(c.name, c.type_oid, c.typmod) for c in message.columns]
    names = {name for name, _, _ in sent}
    known = [a for a in live.attributes if a.name in names]
    if [(a.name, a.type, a.typmod) for a in known] != sent:
        return nobody
    if any(_not_before(a.since, message.xid) for a in known):
        return nobody
    return tuple(a.number for a in known)


def _not_before(since: int, xid: int | None) -> bool:
    """Whether transaction ``since`` is ``xid``, or was numbered after it (numbers go round)."""
    return xid is not None and (since - xid) % 2**32 < 2**31
