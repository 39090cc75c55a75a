"""MySQL's binary JSON as the text the server itself prints: the same as a sweep selects (I6).

A document is a tree of offsets: containers list where their members stand, scalars of up to two
bytes (four in large containers) stand in the list itself. Keys are in the server's own order.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import numpy as np

from tidegate.connectors.mysql.decimals import decimals
from tidegate.connectors.mysql.rows import Payload, Values
from tidegate.connectors.mysql.types import ColumnFacts

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = 0, 1, 2, 3, 4
_DOUBLE, _STRING, _OPAQUE = 11, 12, 15
_INTEGERS: Final = {
    5: struct.Struct("<h"),
    6: struct.Struct("<H"),
    7: struct.Struct("<i"),
    8: struct.Struct("<I"),
    9: struct.Struct("<q"),
    10: struct.Struct("<Q"),
}
_INLINE: Final = (frozenset({_LITERAL, 5, 6}), frozenset({_LITERAL, 5, 6, 7, 8}))
_LITERALS: Final = ("null", "true", "false")
_TIMESTAMP, _DATE, _TIME, _DATETIME, _DECIMAL = 7, 10, 11, 12, 246
_PLAIN_POINT: Final = 15
"""The server writes an exponent where the point stands farther out than this."""
_LINE: Final = 76
_ESCAPES: Final = {
    **{code: f"\\u{code:04x}" for code in range(32)},
    **{ord(c): "\\" + e for c, e in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)},
}


class Scalar(str):
    """The printed text of a number, a literal or a string with its quotes."""

    __slots__ = ()


Node = Scalar | list["Node"] | dict[str, "Node"]


def parse(data: bytes) -> Node:
    """A stored document; nothing at all stands for null, as the server has it."""
    return _node(data[0], data, 1) if data else Scalar("null")


def text(node: Node) -> str:
    return "".join(_printed(node))


def _printed(node: Node) -> Iterator[str]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, dict):
        yield "{"
        for number, (key, value) in enumerate(node.items()):
            yield f"{', ' if number else ''}{quoted(key)}: "
            yield from _printed(value)
        yield "}"
    else:
        yield "["
        for number, value in enumerate(node):
            if number:
                yield ", "
            yield from _printed(value)
        yield "]"


def quoted(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'


def _node(kind: int, data: bytes, at: int) -> Node:
    if kind in (_SMALL_OBJECT, _LARGE_OBJECT):
        return _object(data, at, kind == _LARGE_OBJECT)
    if kind in (_SMALL_ARRAY, _LARGE_ARRAY):
        large = kind == _LARGE_ARRAY
        size = 4 if large else 2
        count = _number(data, at, size)
        return list(_members(data, at, at + 2 * size, count, large))
    return Scalar(_scalar(kind, data, at))


def _object(data: bytes, at: int, large: bool) -> dict[str, Node]:
    size = 4 if large else 2
    count = _number(data, at, size)
    entry = at + 2 * size
    values = entry + count * (size + 2)
    keys = []
    for _ in range(count):
        start = at + _number(data, entry, size)
        keys.append(data[start : start + _number(data, entry + size, 2)].decode())
        entry += size + 2
    return dict(zip(keys, _members(data, at, values, count, large), strict=True))


def _members(data: bytes, base: int, entry: int, count: int, large: bool) -> Iterator[Node]:
    size = 4 if large else 2
    for _ in range(count):
        kind = data[entry]
        inline = kind in _INLINE[large]
        yield _node(kind, data, entry + 1 if inline else base + _number(data, entry + 1, size))
        entry += 1 + size


def _scalar(kind: int, data: bytes, at: int) -> str:
    if kind in _INTEGERS:
        return str(_INTEGERS[kind].unpack_from(data, at)[0])
    if kind == _LITERAL:
        return _LITERALS[data[at]]
    if kind == _DOUBLE:
        return double_text(struct.unpack_from("<d", data, at)[0])
    if kind == _STRING:
        return quoted(_variable(data, at).decode())
    if kind == _OPAQUE:
        return _opaque(data[at], _variable(data, at + 1))
    raise ValueError(f"kind {kind}")


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _variable(data: bytes, at: int) -> bytes:
    """Bytes behind their length, of which each byte holds seven bits, the lowest first."""
    length = shift = 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return data[at : at + length]


def double_text(value: float) -> str:
    """The shortest digits that mean this double, with a point or an exponent: no integer."""
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    _, figures, exponent = Decimal(repr(abs(value))).normalize().as_tuple()
    digits = "".join(map(str, figures))
    point = len(digits) + int(exponent)
    if not -_PLAIN_POINT < point <= _PLAIN_POINT:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return f"{sign}{digits.ljust(point, '0')}.0"
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _opaque(kind: int, data: bytes) -> str:
    if kind == _DECIMAL:
        facts = ColumnFacts("", "decimal", precision=data[0], scale=data[1])
        one = Values(np.zeros(1, np.int64), np.full(1, len(data) - 2), np.ones(1, np.bool_))
        return str(decimals(Payload(data[2:]), one, facts)[0])
    if kind in (_DATE, _DATETIME, _TIMESTAMP, _TIME):
        return f'"{_moment(kind, int.from_bytes(data[:8], "little", signed=True))}"'
    encoded = base64.b64encode(data).decode()
    lines = "\n".join(encoded[at : at + _LINE] for at in range(0, len(encoded), _LINE))
    return quoted(f"base64:type{kind}:{lines}")


def _moment(kind: int, packed: int) -> str:
    sign = "-" if packed < 0 else ""
    packed = abs(packed)
    fraction, whole = packed & 0xFFFFFF, packed >> 24
    clock = f"{whole >> 6 & 63:02}:{whole & 63:02}.{fraction:06}"
    if kind == _TIME:
        return f"{sign}{whole >> 12 & 1023:02}:{clock}"
    months = whole >> 22
    day = f"{months // 13:04}-{months % 13:02}-{whole >> 17 & 31:02}"
    return day if kind == _DATE else f"{day} {whole >> 12 & 31:02}:{clock}"
