"""Tables as the log's own table maps describe them; each description is read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidegate.connectors.mysql.charsets import Charsets
from tidegate.connectors.mysql.row_images import Table
from tidegate.connectors.mysql.statement_effects import Taken
from tidegate.connectors.mysql.table_map import Slot, parse, table_name
from tidegate.connectors.mysql.types import BYTES_OF_TEXT, column
from tidegate.errors import FatalError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

Live = Callable[[TableId], TableSchema | None]
"""A table's columns as the catalog has them now."""
_NO_TABLE = b"\xff\xff\xff\xff\xff\xff"


class DescribedTables:
    """``None`` stands for a table that is not taken."""

    def __init__(self, charsets: Charsets, taken: Taken, live: Live) -> None:
        self._charsets = charsets
        self._taken = taken
        self._live = live
        self._described: dict[bytes, Table | None] = {}
        self._by_id: dict[bytes, Table | None] = {}

    def take(self, body: bytes) -> Table | None:
        """What a table map describes, from here on under its number."""
        number, description = body[:6], body[6:]
        if description not in self._described:
            self._described[description] = self._describe(body)
        self._by_id[number] = self._described[description]
        return self._described[description]

    def of(self, number: bytes) -> Table | None:
        """The table that a row event names by its number."""
        try:
            return self._by_id[number]
        except KeyError:
            if number == _NO_TABLE:
                return None  # the end of a statement without rows
            raise FatalError(
                "capture.unknown_table",
                "a row event names a table that the log did not describe",
                hint="run capture again; if it stays, report this with the server's version",
            ) from None

    def _describe(self, body: bytes) -> Table | None:
        name = self._taken.find(*table_name(body))
        if name is None:
            return None
        slots = self._named(name, parse(body, self._charsets).slots)
        schema = TableSchema(name, tuple(column(slot.facts) for slot in slots))
        return Table(schema, slots)

    def _named(self, table: TableId, slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
        """MariaDB logs uuid, inet4 and inet6 as binary(n): the catalog tells them from bytes. What
        changes a column's type holds the table, so today's catalog is right for its rows."""
        sizes = set(BYTES_OF_TEXT.values())
        if not self._charsets.mariadb or not any(
            s.facts.base == "binary" and s.facts.length in sizes for s in slots
        ):
            return slots
        live = self._live(table)
        types = {} if live is None else {c.name: c.source_type for c in live.columns}

        def named(slot: Slot) -> Slot:
            facts, type_ = slot.facts, types.get(slot.facts.name, "")
            if facts.base != "binary" or BYTES_OF_TEXT.get(type_) != facts.length:
                return slot
            return replace(slot, facts=replace(facts, base=type_, length=0, charset=None))

        return tuple(map(named, slots))
