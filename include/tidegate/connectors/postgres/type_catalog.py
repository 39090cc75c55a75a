"""Types of one database, looked up once per connection and resolved through domains and arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.types import Mapped, PgType, array_of, scalar

_SQL: Final = """
SELECT t.oid, t.typname, n.nspname, t.typtype, t.typbasetype, t.typtypmod,
       CASE WHEN t.typcategory = 'A' AND t.typlen = -1
                 AND t.typname NOT IN ('int2vector', 'oidvector') THEN t.typelem ELSE 0 END,
       coalesce(e.typdelim, t.typdelim)::text, t.typndims
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND t.typelem <> 0
WHERE t.oid = ANY(%s)
"""

_SEPARATOR: Final = ","  # the only one the array cast knows; box[] prints others


class TypeCatalog:
    """Maps (type oid, typmod, dimensions) to what the lake makes of it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._types: dict[int, PgType | None] = {}

    def load(self, oids: Iterable[int]) -> None:
        """Fetch types, and what they are made of, in as few queries as their depth."""
        wanted = {oid for oid in oids if oid and oid not in self._types}
        while wanted:
            rows = self._connection.execute(_SQL, (list(wanted),)).fetchall()
            found = {row[0]: PgType(*row) for row in rows}
            for oid in wanted:
                self._types[oid] = found.get(oid)  # None: dropped since the log was written
            parts = {part for t in found.values() for part in (t.base, t.element) if part}
            wanted = parts - self._types.keys()

    def map(self, oid: int, typmod: int, dimensions: int = 1) -> Mapped:
        """What the lake makes of a column; declared multi-dimensional arrays stay text."""
        self.load((oid,))
        resolved = self._types[oid]
        while resolved is not None and resolved.kind == "d":
            typmod = resolved.base_typmod if resolved.base_typmod != -1 else typmod
            dimensions = max(dimensions, resolved.dimensions)
            resolved = self._types[resolved.base]
        if resolved is None:
            return scalar("", -1)
        if not resolved.element:
            return scalar(resolved.name, typmod, built_in=resolved.built_in)
        if dimensions > 1 or resolved.delimiter != _SEPARATOR:
            return scalar("", -1)
        return array_of(self._element(resolved.element, typmod))

    def _element(self, oid: int, typmod: int) -> Mapped:
        """An element; an array of a domain over an array is text inside the list."""
        element = self._types[oid]
        while element is not None and element.kind == "d":
            typmod = element.base_typmod
            element = self._types[element.base]
        if element is None or element.element:
            return scalar("", -1)
        return scalar(element.name, typmod, built_in=element.built_in)
