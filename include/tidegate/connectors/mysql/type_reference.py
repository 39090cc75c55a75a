"""``docs/reference/types-mysql.md``, written from the function the connector maps by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.connectors.mysql.settings import PINNED
from tidegate.connectors.mysql.types import BLOBS, TEXTS, ColumnFacts, mapped

_HEAD: Final = """\
# Types: MySQL and MariaDB to Iceberg

<!-- Written by `python docs/generate.py` from tidegate.connectors.mysql.types. Do not edit. -->

The lake holds exactly what the source held, whether a row came by a sweep or by the log, or
Tidegate says that it does not. Each row below has cases in the
[conformance suite](../../tests/conformance/README.md), which run on MariaDB and on MySQL.

| MySQL, MariaDB | lake | rule |
|---|---|---|
"""

_REST: Final = """
A value larger than `capture.max_value_bytes` is not taken: its change becomes a dead letter without
it, and a sweep of its table is refused.

## Values no lake type holds

| value | default | other policies |
|---|---|---|
| zero and partial dates (`0000-00-00`, `2024-00-15`) in dates, datetimes and timestamps | \
`clamp`: NULL, counted | `null`, `string`, `reject` |

Policies are written as [for PostgreSQL](types.md#values-no-lake-type-holds); `string` makes the
column text from the start.

## Character sets

Text becomes UTF-8 as the server itself converts it: of character sets with one byte, and of sjis,
cp932, ujis, eucjpms, gbk, gb2312, gb18030, big5 and euckr, each character is asked from the server
once. A character that Unicode does not have is `?` in the lake, as it is in the server's answer.
Half of a surrogate pair in a `ucs2` column is U+FFFD; `validate` warns of such columns.

## JSON

MySQL stores documents in a form of its own. The log path prints them as `CAST(… AS CHAR)` does,
which is what a sweep reads: shorter keys first, one space after colons and commas, doubles with a
point or an exponent, bytes as `base64:type…`. Partial updates (`binlog_row_value_options` =
`PARTIAL_JSON`) are applied to the document of the row's before image; without one
(`binlog_row_image` = `MINIMAL`) the table is held until it is swept. MariaDB's `json` is
`longtext`, kept as written.

MySQL's can be given `type: variant`, as PostgreSQL's
([what that means](types.md#documents-as-variants)). Doubles that the server prints with an exponent
cannot be held: dead letters in the log, and a sweep refuses the table. MariaDB's `json` is text and
stays it.

## Rows that were sent in part

With `binlog_row_image` `MINIMAL` or `NOBLOB` the log has the key and what changed. The rest is
taken from earlier changes of the row or from the lake; columns that an insert leaves out have their
default, if it is a constant. What only the server can compute (a default that is an expression,
MariaDB's virtual columns) holds the table until it is swept.

## Sessions

Settings that decide how values print are pinned in every session of Tidegate's:

"""


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the table: types as people write them, and one column of each."""

    written: tuple[str, ...]
    facts: ColumnFacts
    note: str = ""


def _of(base: str, **facts: int | bool) -> ColumnFacts:
    return ColumnFacts("", base, **facts)  # type: ignore[arg-type]


SHOWN: Final = (
    Shown(
        ("tinyint", "smallint", "mediumint", "int", "bool"),
        _of("int"),
        "smaller ones also unsigned; display widths and `zerofill` are ornaments",
    ),
    Shown(("int unsigned", "bigint"), _of("bigint")),
    Shown(("bigint unsigned",), _of("bigint", unsigned=True)),
    Shown(("year",), _of("year"), "0000 is 0"),
    Shown(("bit(1)",), _of("bit", precision=1)),
    Shown(("bit(2)", "bit(63)"), _of("bit", precision=63), "and those between, as numbers"),
    Shown(("bit(64)",), _of("bit", precision=64), "as a number"),
    Shown(
        ("decimal(38,10)",),
        _of("decimal", precision=38, scale=10),
        "and every `decimal(p,s)` up to 38 digits",
    ),
    Shown(("decimal(65,30)",), _of("decimal", precision=65, scale=30), "39 digits and more: all"),
    Shown(("float",), _of("float"), "the same bits"),
    Shown(("double",), _of("double"), "the same bits"),
    Shown(("date",), _of("date"), "zero and partial dates by policy"),
    Shown(("datetime", "datetime(6)"), _of("datetime", precision=6), "as written, without a zone"),
    Shown(
        ("timestamp", "timestamp(6)"),
        _of("timestamp", precision=6),
        "the instant, whatever the zones of server and session",
    ),
    Shown(("time", "time(6)"), _of("time"), "−838:59:59 to 838:59:59, with its fraction"),
    Shown(("char(n)",), _of("char"), "without its padding"),
    Shown(("varchar(n)", *TEXTS), _of("varchar"), "in UTF-8; MariaDB's `COMPRESSED` too"),
    Shown(("enum",), _of("enum"), "the label; an invalid value (number 0) is the empty text"),
    Shown(("set",), _of("set"), "labels in the order of the type, with commas"),
    Shown(("json",), _of("json"), "MySQL's: as the server prints it; MariaDB's: as written"),
    Shown(("uuid", "inet4", "inet6"), _of("uuid"), "MariaDB's, as the server prints them"),
    Shown(("binary(n)",), _of("binary"), "with all its zeros"),
    Shown(("varbinary(n)", *BLOBS), _of("varbinary"), "MariaDB's `COMPRESSED` too"),
    Shown(
        ("geometry", "point", "linestring", "polygon"),
        _of("geometry"),
        "and the others: SRID and WKB, as stored",
    ),
)


def reference() -> str:
    """The page."""
    rows = "".join(_row(shown) for shown in SHOWN)
    pinned = "\n".join(f"- `{name}` = `{value}`" for name, value in PINNED.items())
    return _HEAD + rows + _REST + pinned + "\n"


def _row(shown: Shown) -> str:
    names = ", ".join(f"`{name}`" for name in shown.written)
    return f"| {names} | `{mapped(shown.facts).type}` | {shown.note} |\n"
