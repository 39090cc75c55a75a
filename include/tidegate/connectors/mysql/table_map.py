"""A table map event: the log's own description of a table, complete with full row metadata.

With ``binlog_row_metadata=FULL`` it names columns, signs, character sets, labels and the primary
key. So the log explains itself at every position, whatever the table looks like today.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tidegate.connectors.mysql.charsets import BINARY, UTF8, Charsets
from tidegate.connectors.mysql.types import BLOBS, TEXTS, ColumnFacts
from tidegate.errors import ConfigError, FatalError, HeldError
from tidegate.names import TableId

_ENUM, _SET, _STRING, _GEOMETRY = 247, 248, 254, 255
_JSON = 245
_COMPRESSED: Final = {140: 252, 141: 15}  # MariaDB's, and what they are otherwise
_CHARACTER: Final = frozenset({15, 252, 253, _STRING, *_COMPRESSED})
_NUMERIC: Final = frozenset({1, 2, 3, 4, 5, 8, 9, 13, 246})  # also the year
_META_BYTES: Final = {
    **dict.fromkeys((4, 5, 17, 18, 19, 140, 245, 252, 255), 1),
    **dict.fromkeys((15, 16, 141, 246, 247, 248, 253, 254), 2),
}
_PLAIN: Final = {
    1: ("tinyint", 1),
    2: ("smallint", 2),
    3: ("int", 4),
    4: ("float", 4),
    5: ("double", 8),
    8: ("bigint", 8),
    9: ("mediumint", 3),
    10: ("date", 3),
    13: ("year", 1),
    14: ("date", 3),
}
_TIMED: Final = {17: ("timestamp", 4), 18: ("datetime", 5), 19: ("time", 3)}
_OLD_TEMPORAL: Final = frozenset({7, 11, 12})
_GROUP_DIGITS: Final = 9
_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)

SIGNS, DEFAULT_CHARSET, CHARSETS, NAMES, SETS, ENUMS = 1, 2, 3, 4, 5, 6
KEY, KEY_PREFIXES, LABELS_CHARSET, LABELS_CHARSETS = 8, 9, 10, 11


@dataclass(frozen=True, slots=True)
class Slot:
    """How a column's values stand in a row: ``width`` bytes, or ``prefix`` bytes of length."""

    facts: ColumnFacts
    width: int = 0
    prefix: int = 0
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class TableMap:
    table: TableId
    slots: tuple[Slot, ...]


class _Bytes:
    """A cursor over the event."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def packed(self) -> int:
        first = self.data[self.at]
        self.at += 1
        if first < 251:
            return first
        return int.from_bytes(self.take({252: 2, 253: 3, 254: 8}[first]), "little")

    def text(self) -> bytes:
        return self.take(self.packed())

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


def table_name(body: bytes) -> TableId:
    """The name alone, which is cheap."""
    size = body[8]
    at = 9 + size + 1
    return TableId(body[9 : 9 + size].decode(), body[at + 1 : at + 1 + body[at]].decode())


def parse(body: bytes, charsets: Charsets) -> TableMap:
    """``body`` is the event without header and checksum."""
    table = table_name(body)
    cursor = _Bytes(body, 9 + body[8] + 1)
    cursor.at += 1 + body[cursor.at] + 1
    types = list(cursor.take(cursor.packed()))
    metas = list(_metas(types, cursor.text()))
    nulls = cursor.take((len(types) + 7) // 8)
    optional = dict(_optional(cursor))
    if NAMES not in optional:
        raise HeldError(
            "capture.row_metadata",
            f"the log describes {table} without names: binlog_row_metadata is not FULL",
            hint="SET GLOBAL binlog_row_metadata = FULL, then `tidegate recover` or a new deploy:"
            " what was written before cannot be read",
        )
    for number, (type_, meta) in enumerate(zip(types, metas, strict=True)):
        if type_ == _STRING and meta & 0xFF in (_ENUM, _SET):
            types[number] = meta & 0xFF
    described = _Described(types, metas, optional, charsets)
    keys = {at: place for place, at in enumerate(_key(optional))}
    slots = tuple(
        described.slot(at, bool(nulls[at // 8] >> at % 8 & 1), keys.get(at), table)
        for at in range(len(types))
    )
    return TableMap(table, slots)


class _Described:
    def __init__(
        self,
        types: list[int],
        metas: list[int],
        optional: dict[int, bytes],
        charsets: Charsets,
    ) -> None:
        self._types, self._metas, self._charsets = types, metas, charsets
        names = _Bytes(optional[NAMES])
        self._names = [names.text().decode() for _ in types]
        self._unsigned = _signs(types, optional.get(SIGNS, b""))
        listed = _CHARACTER | {_GEOMETRY} if charsets.mariadb else _CHARACTER
        self._collations = _collations(types, optional, listed, DEFAULT_CHARSET, CHARSETS)
        self._labels = _labels(types, optional, charsets)

    def slot(self, at: int, nullable: bool, key: int | None, table: TableId) -> Slot:
        shape = self._shape(at, self._names[at])
        if shape is None:
            raise _unsupported(table, self._names[at], self._types[at])
        # MariaDB takes every column of an outer join's inner table for nullable.
        nullable = nullable and key is None
        return replace(shape, facts=replace(shape.facts, nullable=nullable, key=key))

    def _shape(self, at: int, name: str) -> Slot | None:
        """None for a type whose rows cannot be read."""
        type_, meta = self._types[at], self._metas[at]
        if type_ in _PLAIN:
            base, width = _PLAIN[type_]
            unsigned = at in self._unsigned and base != "year"
            return Slot(ColumnFacts(name, base, unsigned), width)
        if type_ in _TIMED:
            base, width = _TIMED[type_]
            facts = ColumnFacts(name, base, precision=meta)
            return Slot(facts, width + (meta + 1) // 2)
        if type_ == 246:
            precision, scale = meta & 0xFF, meta >> 8
            unsigned = at in self._unsigned
            facts = ColumnFacts(name, "decimal", unsigned, precision, scale)
            return Slot(facts, decimal_bytes(precision, scale))
        if type_ == 16:
            bits = (meta >> 8) * 8 + (meta & 0xFF)
            return Slot(ColumnFacts(name, "bit", precision=bits), (bits + 7) // 8)
        if type_ in (_ENUM, _SET):
            base = "enum" if type_ == _ENUM else "set"
            facts = ColumnFacts(name, base, labels=self._labels[at])
            return Slot(facts, meta >> 8)
        if type_ == _JSON:
            return Slot(ColumnFacts(name, "json"), prefix=meta)
        if type_ == _GEOMETRY:
            return Slot(ColumnFacts(name, "geometry"), prefix=meta)
        if type_ in _CHARACTER:
            return self._characters(at, name)
        return None

    def _characters(self, at: int, name: str) -> Slot:
        type_, meta = self._types[at], self._metas[at]
        charset = self._charsets.name(self._collations[at])
        binary, compressed = charset == BINARY, type_ in _COMPRESSED
        type_ = _COMPRESSED.get(type_, type_)
        if type_ == 252:
            base = (BLOBS if binary else TEXTS)[meta - 1]
            facts = ColumnFacts(name, base, charset=charset)
            return Slot(facts, prefix=meta, compressed=compressed)
        size = meta
        if type_ == _STRING:
            high, low = meta & 0xFF, meta >> 8
            size = low if high & 0x30 == 0x30 else low | ((high & 0x30) ^ 0x30) << 4
            base = "binary" if binary else "char"
        else:
            base = "varbinary" if binary else "varchar"
        characters = size - 1 if compressed else size  # a header is stored with the value
        length = characters // (1 if binary else self._charsets.width(charset))
        facts = ColumnFacts(name, base, length=length, charset=charset)
        return Slot(facts, prefix=1 if size < 256 else 2, compressed=compressed)


def decimal_bytes(precision: int, scale: int) -> int:
    whole, digits = precision - scale, _GROUP_DIGITS
    return (
        whole // digits * 4
        + _DIGIT_BYTES[whole % digits]
        + scale // digits * 4
        + _DIGIT_BYTES[scale % digits]
    )


def _metas(types: list[int], data: bytes) -> Iterator[int]:
    at = 0
    for type_ in types:
        size = _META_BYTES.get(type_, 0)
        yield int.from_bytes(data[at : at + size], "little")
        at += size


def _optional(cursor: _Bytes) -> Iterator[tuple[int, bytes]]:
    while cursor.more:
        yield cursor.take(1)[0], cursor.text()


def _signs(types: list[int], bits: bytes) -> set[int]:
    numeric = [at for at, type_ in enumerate(types) if type_ in _NUMERIC]
    return {at for n, at in enumerate(numeric) if bits and bits[n // 8] & (0x80 >> n % 8)}


def _collations(
    types: list[int], optional: dict[int, bytes], listed: frozenset[int], default: int, each: int
) -> dict[int, int]:
    """Of the columns of ``listed`` types: one collation and the exceptions, or one by one."""
    texts = [at for at, type_ in enumerate(types) if type_ in listed]
    if each in optional:
        cursor = _Bytes(optional[each])
        return {at: cursor.packed() for at in texts}
    if default not in optional:
        return {}
    cursor = _Bytes(optional[default])
    found = dict.fromkeys(texts, cursor.packed())
    while cursor.more:
        at = texts[cursor.packed()]
        found[at] = cursor.packed()
    return found


def _labels(
    types: list[int], optional: dict[int, bytes], charsets: Charsets
) -> dict[int, tuple[str, ...]]:
    """They are written in the character set of their column."""
    found: dict[int, tuple[str, ...]] = {}
    listed = frozenset({_ENUM, _SET})
    collations = _collations(types, optional, listed, LABELS_CHARSET, LABELS_CHARSETS)
    for kind, field in ((_ENUM, ENUMS), (_SET, SETS)):
        cursor = _Bytes(optional.get(field, b""))
        for at in (at for at, type_ in enumerate(types) if type_ == kind):
            own = [cursor.text() for _ in range(cursor.packed())]
            charset = charsets.name(collations[at]) if at in collations else UTF8
            charset = UTF8 if charset == BINARY else charset
            found[at] = tuple(str(label) for label in charsets.decoded(own, charset))
    return found


def _key(optional: dict[int, bytes]) -> list[int]:
    if KEY in optional:
        cursor, key = _Bytes(optional[KEY]), []
        while cursor.more:
            key.append(cursor.packed())
        return key
    cursor, key = _Bytes(optional.get(KEY_PREFIXES, b"")), []
    while cursor.more:
        key.append(cursor.packed())
        cursor.packed()  # the prefix's length: the whole value is in the row all the same
    return key


def _unsupported(table: TableId, name: str, type_: int) -> Exception:
    if type_ in _OLD_TEMPORAL:
        return ConfigError(
            "capture.old_temporal",
            f"{table}.{name} is stored in the format of MySQL 5.5",
            hint=f"ALTER TABLE {table.sql} FORCE, then sweep the table",
        )
    return FatalError(
        "capture.type",
        f"{table}.{name} has a type ({type_}) whose values in the log are not understood",
        hint="convert the column, or take the table out of source.tables, then `tidegate deploy`",
    )
