"""Partial updates of JSON columns: what was logged is how the document changed, not what it is.

``binlog_row_value_options=PARTIAL_JSON`` has each changed place as an operation, a path and a
value. They are applied to the document of the row's before image.
"""

from __future__ import annotations

import json
import re
from typing import Final

from tidegate.connectors.mysql.json_values import Node, parse
from tidegate.errors import FatalError

_INSERT, _REMOVE = 1, 2  # 0 replaces
_LEG: Final = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^.\[]+))|\[(\d+)\]', re.DOTALL)
_LONG: Final = {252: 2, 253: 3, 254: 8}

Leg = str | int


def applied(document: Node, diffs: bytes) -> Node:
    """``document`` after every change of ``diffs``; it is changed in place."""
    at = 0
    while at < len(diffs):
        operation = diffs[at]
        path, at = _sized(diffs, at + 1)
        value = None
        if operation != _REMOVE:
            stored, at = _sized(diffs, at)
            value = parse(stored)
        _apply(document, operation, legs(path.decode()), value)
    return document


def legs(path: str) -> list[Leg]:
    """``$.a[2]."b c"`` → a, 2, b c."""
    found: list[Leg] = []
    at = 1
    while at < len(path):
        leg = _LEG.match(path, at)
        if leg is None:
            raise _odd()
        name, plain, index = leg.groups()
        if index is not None:
            found.append(int(index))
        else:
            found.append(plain if name is None else str(json.loads(f'"{name}"', strict=False)))
        at = leg.end()
    return found


def _apply(document: Node, operation: int, path: list[Leg], value: Node | None) -> None:
    place: Node = document
    if not path:
        raise _odd()
    for leg in path[:-1]:
        place = _child(place, leg)
    last = path[-1]
    if isinstance(place, dict) and isinstance(last, str):
        _in_object(place, operation, last, value)
    elif isinstance(place, list) and isinstance(last, int):
        _in_array(place, operation, last, value)
    else:
        raise _odd()


def _in_object(place: dict[str, Node], operation: int, key: str, value: Node | None) -> None:
    if value is None:
        del place[key]
        return
    place[key] = value
    if operation == _INSERT:
        _reorder(place)


def _in_array(place: list[Node], operation: int, at: int, value: Node | None) -> None:
    if value is None:
        del place[at]
    elif operation == _INSERT:
        place.insert(at, value)
    else:
        place[at] = value


def _child(place: Node, leg: Leg) -> Node:
    if isinstance(place, dict) and isinstance(leg, str):
        return place[leg]
    if isinstance(place, list) and isinstance(leg, int):
        return place[leg]
    raise _odd()


def _reorder(members: dict[str, Node]) -> None:
    """The server keeps shorter keys first, then by their bytes."""
    ordered = sorted(members.items(), key=lambda item: (len(item[0].encode()), item[0].encode()))
    members.clear()
    members.update(ordered)


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = data[at], at + 1
    if size in _LONG:
        width = _LONG[size]
        size, at = int.from_bytes(data[at : at + width], "little"), at + width
    return data[at : at + size], at + size


def _odd() -> FatalError:
    return FatalError(
        "capture.json_diff",
        "a partial update of a JSON value names a place that its document does not have",
        hint="SET GLOBAL binlog_row_value_options = '', then `tidegate recover`; report this with"
        " the server's version",
    )
