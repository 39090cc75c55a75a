"""Character sets of the source: which collation means which, and how their bytes become UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from tidegate.connectors.mysql.connection import Connection, is_mariadb, query
from tidegate.errors import ConfigError

BINARY: Final = "binary"
UTF8: Final = "utf8mb4"
_AS_IT_IS: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
_UNICODE: Final = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le"}
_UNICODE_4: Final = {"utf32": "utf-32-be"}
_PAIR: Final = rb"[\x81-\xfe][\x40-\xff]"
_EUC: Final = rb"\x8f[\xa1-\xfe]{2}|\x8e[\xa1-\xdf]|[\xa1-\xfe]{2}"
_SHIFTED: Final = rb"[\x81-\x9f\xe0-\xfc][\x40-\xfc]"
_CHARACTERS: Final = {
    "big5": _PAIR,
    "gbk": _PAIR,
    "gb2312": _PAIR,
    "euckr": _PAIR,
    "sjis": _SHIFTED,
    "cp932": _SHIFTED,
    "ujis": _EUC,
    "eucjpms": _EUC,
    "gb18030": rb"[\x81-\xfe][\x30-\x39][\x81-\xfe][\x30-\x39]|" + _PAIR,
}
"""Where a character of more than one byte ends; any other byte is a character by itself."""
_ASKED: Final = 500
"""Characters per question to the server."""
_REPLACEMENT: Final = "?"
"""What the server writes for a character that Unicode does not have."""


@dataclass
class Charsets:
    """Asked from the server, so that its conversion and ours are one (I6)."""

    by_collation: dict[int, str]
    widths: dict[str, int]  # bytes of the longest character
    mariadb: bool = False  # whose log lists a character set for geometries too
    connection: Connection | None = None
    _tables: dict[str, list[str]] = field(default_factory=dict)
    _known: dict[str, dict[bytes, str]] = field(default_factory=dict)

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
        charsets.connection = connection
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
        if charset in _AS_IT_IS or charset in _CHARACTERS:
            return True
        known = charset in _UNICODE or charset in _UNICODE_4
        return known or (self.widths.get(charset) == 1 and charset != BINARY)

    def to_utf8(self, texts: pa.Array, charset: str) -> pa.Array:
        """``texts`` hold the charset's bytes; the same values in UTF-8."""
        if charset in _AS_IT_IS:
            return texts
        values = texts.cast(pa.binary()).to_pylist()
        return pa.array(self.decoded(values, charset), pa.string())

    def decoded(self, values: Sequence[bytes | None], charset: str) -> list[str | None]:
        if not self.supported(charset):
            raise ConfigError(
                "source.charset",
                f"text in character set {charset} cannot be taken exactly",
                hint="convert the column: ALTER TABLE … CONVERT TO CHARACTER SET utf8mb4",
            )
        decode = self._decoder(charset, values)
        return [None if value is None else decode(value) for value in values]

    def _decoder(self, charset: str, values: Sequence[bytes | None]) -> Callable[[bytes], str]:
        codec = _UNICODE.get(charset) or _UNICODE_4.get(charset)
        if charset in _AS_IT_IS:
            codec = "utf-8"
        if codec is not None:
            return lambda value: value.decode(codec, "replace")  # halves of surrogate pairs
        if charset in _CHARACTERS:
            pattern = re.compile(_CHARACTERS[charset] + rb"|.", re.DOTALL)
            known = self._learned(charset, pattern, values)
            return lambda value: "".join([known[one] for one in pattern.findall(value)])
        table = self._table(charset)
        return lambda value: "".join(map(table.__getitem__, value))

    def _learned(
        self, charset: str, pattern: re.Pattern[bytes], values: Sequence[bytes | None]
    ) -> dict[bytes, str]:
        """Characters of a charset as the server converts them; each is asked once."""
        known = self._known.setdefault(charset, {})
        seen = {one for value in values if value for one in pattern.findall(value)}
        new = sorted(seen - known.keys())
        for at in range(0, len(new), _ASKED):
            some = new[at : at + _ASKED]
            known.update(zip(some, self._converted(charset, some), strict=True))
        return known

    def _table(self, charset: str) -> list[str]:
        """What the server makes of each byte of a one-byte character set; asked once."""
        if charset not in self._tables:
            every = [bytes([byte]) for byte in range(256)]
            self._tables[charset] = self._converted(charset, every)
        return self._tables[charset]

    def _converted(self, charset: str, characters: Sequence[bytes]) -> list[str]:
        assert self.connection is not None
        asked = (f"CONVERT(_{charset} X'{one.hex()}' USING utf8mb4)" for one in characters)
        (row,) = query(self.connection, f"SELECT {', '.join(asked)}")
        return [_REPLACEMENT if value is None else str(value) for value in row]
