"""Character sets of the source: which collation means which, and how their bytes become UTF-8."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from tidegate.connectors.mysql.connection import Connection, is_mariadb, query
from tidegate.errors import ConfigError

BINARY: Final = "binary"
_AS_IT_IS: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
_UNICODE: Final = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le"}
_UNICODE_4: Final = {"utf32": "utf-32-be"}


@dataclass
class Charsets:
    """Asked from the server, so that its conversion and ours are one (I6)."""

    by_collation: dict[int, str]
    widths: dict[str, int]  # bytes of the longest character
    of_geometries: bool = False  # MariaDB's log lists a character set for geometries too
    _tables: dict[str, list[str]] = field(default_factory=dict)
    _connection: Connection | None = None

    @classmethod
    def read(cls, connection: Connection) -> Charsets:
        rows = query(
            connection,
            "SELECT id, character_set_name FROM information_schema.collations"
            " WHERE id IS NOT NULL AND character_set_name IS NOT NULL",
        )
        found = {int(number): str(name) for number, name in rows}
        applicable = query(
            connection,
            "SELECT count(*) FROM information_schema.columns WHERE table_schema ="
            " 'information_schema' AND table_name = 'COLLATION_CHARACTER_SET_APPLICABILITY'"
            " AND column_name = 'ID'",
        )
        if applicable[0][0]:  # MariaDB's collations for every Unicode character set
            rows = query(
                connection,
                "SELECT id, character_set_name FROM"
                " information_schema.collation_character_set_applicability",
            )
            found |= {int(number): str(name) for number, name in rows}
        widths = query(
            connection, "SELECT character_set_name, maxlen FROM information_schema.character_sets"
        )
        charsets = cls(
            found, {str(name): int(size) for name, size in widths}, is_mariadb(connection)
        )
        charsets._connection = connection
        return charsets

    def name(self, collation: int) -> str:
        found = self.by_collation.get(collation)
        if found is None:
            raise ConfigError(
                "source.collation",
                f"the source does not name its collation number {collation}",
                hint="report this with the server's version",
            )
        return found

    def width(self, charset: str) -> int:
        return self.widths.get(charset, 1)

    def supported(self, charset: str) -> bool:
        known = charset in _AS_IT_IS or charset in _UNICODE or charset in _UNICODE_4
        return known or (self.widths.get(charset) == 1 and charset != BINARY)

    def to_utf8(self, texts: pa.Array, charset: str) -> pa.Array:
        """``texts`` hold the charset's bytes; the same values in UTF-8."""
        if charset in _AS_IT_IS:
            return texts
        codec = _UNICODE.get(charset) or _UNICODE_4.get(charset)
        if not self.supported(charset):
            raise ConfigError(
                "source.charset",
                f"text in character set {charset} cannot be taken exactly",
                hint="convert the column: ALTER TABLE … CONVERT TO CHARACTER SET utf8mb4",
            )
        values = texts.cast(pa.binary()).to_pylist()
        if codec is not None:
            decoded = [None if v is None else v.decode(codec, "surrogatepass") for v in values]
        else:
            table = self._table(charset)
            decoded = [None if v is None else "".join(map(table.__getitem__, v)) for v in values]
        return pa.array(decoded, pa.string())

    def _table(self, charset: str) -> list[str]:
        """What the server makes of each byte of a one-byte character set; asked once."""
        if charset not in self._tables:
            assert self._connection is not None
            bytes_ = (f"CONVERT(_{charset} X'{byte:02X}' USING utf8mb4)" for byte in range(256))
            (row,) = query(self._connection, f"SELECT {', '.join(bytes_)}")
            self._tables[charset] = ["?" if value is None else str(value) for value in row]
        return self._tables[charset]
