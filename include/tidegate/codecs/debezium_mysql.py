"""Values and ``source`` as Debezium's MySQL and MariaDB connectors print them in JSON.

Their defaults: ``decimal.handling.mode=precise``, ``binary.handling.mode=bytes``,
``time.precision.mode=adaptive_time_microseconds``, ``bigint.unsigned.handling.mode=long``. Of
``source``, the file's name is its number alone, ``pos`` is where the transaction begins, and what
the change log does not keep (``gtid``, ``thread``, ``query``) is null.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, Final

from tidegate.codecs import debezium_values as plain
from tidegate.envelope.change import Change
from tidegate.envelope.position import BINLOG
from tidegate.names import TableId
from tidegate.schema.table import Column
from tidegate.schema.types import Kind

_DIGITS: Final = re.compile(r"\((\d+)\)")
_MARIADB: Final = re.compile(rf"{BINLOG}\d+-(?P<server>\d+)_")
"""MariaDB's epochs name its domain and server; MySQL's a UUID."""
_BEYOND_LONG: Final = 2**64
_OCTETS: Final = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")


def value(column: Column, text: str | None) -> Any:
    """One value; None stays None."""
    return None if text is None else _converter(column)(text)


def _converter(column: Column) -> Callable[[str], Any]:
    base = re.split(r"[ (]", column.source_type, maxsplit=1)[0]
    found = _DIGITS.search(column.source_type)
    digits = int(found[1]) if found else 0
    if base == "decimal":
        scale = column.source_type.partition(",")[2].partition(")")[0]
        return lambda text: plain.fixed(text, int(scale or 0))
    if base == "bit":
        return _flag if digits == 1 else lambda text: _bits(text, digits)
    if base == "datetime":
        return lambda text: plain.timestamp(text, digits)
    if base == "timestamp":
        return lambda text: _zoned(text, digits)
    if base == "time":
        return plain.clock
    if base in _OCTETS:
        return plain.octets
    if column.type.kind is Kind.DATE:
        return plain.days
    if column.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return float
    if base == "bigint":
        return _long
    return int if column.type.kind in (Kind.INT, Kind.LONG) else str


def _zoned(text: str, digits: int) -> str:
    """Without the zeros at the end of the fraction."""
    shown = plain.zoned(text, digits)
    return f"{shown[:-1].rstrip('0').rstrip('.')}Z" if "." in shown else shown


def _long(text: str) -> int:
    """64 bits with a sign, whatever the column's."""
    number = int(text)
    return number - _BEYOND_LONG if number >= _BEYOND_LONG // 2 else number


def _flag(text: str) -> bool:
    return text == "t"


def _bits(text: str, count: int) -> str:
    """Little-endian, as many bytes as the bits need."""
    return base64.b64encode(int(text).to_bytes((count + 7) // 8, "little")).decode()


def source(change: Change) -> dict[str, Any]:
    """What is the MySQL family's own in ``source``."""
    table = TableId.parse(change.table)
    number = change.position.lsn
    mariadb = _MARIADB.match(change.position.epoch)
    return {
        "connector": "mariadb" if mariadb else "mysql",
        "db": table.schema,
        "sequence": None,
        "table": table.name,
        "server_id": int(mariadb["server"]) if mariadb else 0,
        "gtid": None,
        "file": f"{number >> 32:06d}",
        "pos": number & 0xFFFFFFFF,
        "row": 0,
        "thread": None,
        "query": None,
    }
