"""What a lake would hold: the rows of the beginning with every captured change made to them.

Cheaper than Spark, and as true where values are plain: the log's own text is compared with the
source's. Where a column leaves and another of its name comes, an apply holds the table; so that
counts as held.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.support.mysql import MysqlDatabase
from tidegate.connectors.changes import ChangeBatch
from tidegate.envelope.position import Position
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

Row = dict[str, str | None]


def source_rows(db: MysqlDatabase, table: str) -> list[Row]:
    """As text; empty if there is no such table."""
    quoted = f"`{table.replace('`', '``')}`"
    found = db.rows(
        "SELECT column_name FROM information_schema.columns"
        f" WHERE table_schema = '{db.name}' AND table_name = {db.literal(table)}"
        " ORDER BY ordinal_position"
    )
    names = [str(name) for (name,) in found]
    if not names:
        return []
    rows = db.rows(f"SELECT * FROM {quoted}")
    texts = [[None if v is None else str(v) for v in row] for row in rows]
    return sorted((dict(zip(names, row, strict=True)) for row in texts), key=repr)


class Replay:
    """One table."""

    def __init__(self, db: MysqlDatabase, table: str) -> None:
        self.db, self.table = db, table
        self.name = str(TableId(db.name, table))
        self.held: list[str] = []
        self._rows = source_rows(db, table)
        self._columns: list[list[str]] = [list(row) for row in self._rows[:1]]
        self._schemas: dict[str, TableSchema] = {}
        self._left: set[str] = set()

    def take(self, batches: Iterable[ChangeBatch]) -> Position | None:
        through = None
        for batch in batches:
            for seen in batch.schemas:
                if str(seen.schema.table) == self.name:
                    self._see(seen.schema)
            for altered in batch.altered:
                if str(altered.table) == self.name:
                    self._left |= altered.left
                    self.held += [f"{name} came back" for name in self._left & altered.came]
            self.held += [hold.reason for hold in batch.holds if hold.table == self.name]
            for row in batch.rows.to_pylist():
                if row["table"] == self.name:
                    self._change(row)
            through = batch.through
        return through

    def rows(self) -> list[Row]:
        """In the columns that the source has now; what came later is null in older rows."""
        now = source_rows(self.db, self.table)
        names = list(now[0]) if now else []
        own = ({name: row.get(name) for name in names} for row in self._rows)
        return sorted(own, key=repr) if now else self._rows

    def is_right(self) -> bool:
        return bool(self.held) or self.rows() == source_rows(self.db, self.table)

    def _see(self, schema: TableSchema) -> None:
        self._schemas[schema.schema_id] = schema
        names = [column.name for column in schema.columns]
        known = {name for columns in self._columns for name in columns}
        last = self._columns[-1] if self._columns else names
        if set(names) & (known - set(last)):
            self.held.append("a column came back")
        self._columns.append(names)

    def _change(self, row: dict[str, Any]) -> None:
        if row["op"] == "t":
            self._rows = []
            return
        schema = self._schemas[row["schema_id"]]
        keys = [column.name for column in schema.key_columns]
        old = dict(zip(keys, row["key"], strict=True))
        if row["op"] in "ud":
            self._rows = [r for r in self._rows if any(r[k] != v for k, v in old.items())]
        if row["op"] in "cu":
            names = [column.name for column in schema.columns]
            self._rows.append(dict(zip(names, row["after"], strict=True)))
