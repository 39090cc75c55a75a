"""What happens to a table, in SQL: Debezium was recorded with it, and ours is compared over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DONE: Final = "done"
"""The table whose first row ends the recording."""


@dataclass(frozen=True, slots=True)
class Story:
    """``before`` is there when capture begins; each of ``after`` is one transaction."""

    tables: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[tuple[str, ...], ...]


_PG_TYPES: Final = (
    ("flag", "boolean", "true"),
    ("small", "smallint", "-32768"),
    ("big", "bigint", "9223372036854775807"),
    ("amount", "numeric(12,2)", "-1234567.89"),
    ("anything", "numeric", "1.500"),
    ("hundred", "numeric", "100"),
    ("zero", "numeric", "0.00"),
    ("price", "money", "'12.34'"),
    ("ratio", "real", "0.1"),
    ("exact", "double precision", "1e-7"),
    ("code", "char(5)", "'ab'"),
    ("name", "varchar(20)", "'é漢🌊'"),
    ("note", "text", "'it''s \"quoted\" \\'"),
    ("raw", "bytea", "'\\x00ff10'"),
    ("born", "date", "'1969-12-31'"),
    ("at", "timestamp", "'2024-02-29 12:34:56.789012'"),
    ("at_ms", "timestamp(3)", "'2024-02-29 12:34:56.789'"),
    ("at_zone", "timestamptz", "'2024-02-29 12:34:56.789+02'"),
    ("at_zone_even", "timestamptz", "'2024-02-29 12:34:56+00'"),
    ("at_zone0", "timestamptz(0)", "'2024-02-29 12:34:56+00'"),
    ("clock", "time", "'23:59:59.999999'"),
    ("clock_ms", "time(3)", "'01:02:03.456'"),
    ("clock_zone", "timetz", "'12:34:56.5+02'"),
    ("clock_west", "timetz", "'23:59:59.123456-05:30'"),
    ("ever", "timestamp", "'infinity'"),
    ("ever_zone", "timestamptz", "'-infinity'"),
    ("ever_day", "date", "'infinity'"),
    ("span", "interval", "'1 year 2 mons 3 days 04:05:06.789'"),
    ("id128", "uuid", "'00000000-0000-0000-0000-00000000000a'"),
    ("doc", "json", """'{"b": 1,  "a": [true, null]}'"""),
    ("docb", "jsonb", """'{"b": 1,  "a": [true, null]}'"""),
    ("one_bit", "bit(1)", "B'1'"),
    ("bits", "bit(10)", "B'1000000001'"),
    ("some_bits", "bit varying(10)", "B'101'"),
    ("net", "inet", "'10.0.0.1'"),
    ("block", "cidr", "'10.0.0.0/8'"),
    ("mac", "macaddr", "'08:00:2b:01:02:03'"),
    ("days", "daterange", "'[2024-01-01,2024-02-01)'"),
    ("numbers", "integer[]", "'{1,NULL,-3}'"),
    ("words", "text[]", '\'{"a,b","",NULL}\''),
    ("mood", "mood", "'fine'"),
)
_MY_TYPES: Final = (
    ("tiny", "tinyint", "-128"),
    ("flag", "tinyint(1)", "1"),
    ("small", "smallint unsigned", "65535"),
    ("medium", "mediumint", "-8388608"),
    ("whole", "int unsigned", "4294967295"),
    ("big", "bigint", "-9223372036854775808"),
    ("ubig", "bigint unsigned", "9223372036854775807"),
    ("ubig_most", "bigint unsigned", "18446744073709551615"),
    ("amount", "decimal(12,2)", "-1234567.89"),
    ("ratio", "float", "0.5"),
    ("exact", "double", "0.1"),
    ("code", "char(5)", "'ab'"),
    ("name", "varchar(20)", "'é漢🌊'"),
    ("note", "text", "'it''s \"quoted\"'"),
    ("latin", "varchar(10) CHARACTER SET latin1", "'é'"),
    ("raw", "varbinary(8)", "x'00ff10'"),
    ("padded", "binary(4)", "x'01'"),
    ("big_raw", "blob", "x'00'"),
    ("born", "date", "'1969-12-31'"),
    ("at", "datetime", "'2024-02-29 12:34:56'"),
    ("at_ms", "datetime(3)", "'2024-02-29 12:34:56.789'"),
    ("at_us", "datetime(6)", "'2024-02-29 12:34:56.789012'"),
    ("at_zone", "timestamp NULL", "'2024-02-29 12:34:56'"),
    ("at_zone_us", "timestamp(6) NULL", "'2024-02-29 12:34:56.789012'"),
    ("at_zone_even", "timestamp(6) NULL", "'2024-02-29 12:34:56'"),
    ("clock", "time", "'-12:34:56'"),
    ("clock_ms", "time(3)", "'-00:00:00.5'"),
    ("clock_us", "time(6)", "'23:59:59.999999'"),
    ("made", "year", "2024"),
    ("one_bit", "bit(1)", "b'1'"),
    ("bits", "bit(10)", "b'1000000001'"),
    ("mood", "enum('fine','so so')", "'so so'"),
    ("tags", "set('x','y','z')", "'x,z'"),
)


def _story(types: tuple[tuple[str, str, str], ...], *first: str, full: str) -> Story:
    columns = ", ".join(f"{name} {type_}" for name, type_, _ in types)
    values = ", ".join(literal for _, _, literal in types)
    nothing = ", ".join("NULL" for _ in types)
    return Story(
        tables=("typed", "plain"),
        before=(
            *first,
            f"CREATE TABLE typed (id integer PRIMARY KEY, {columns})",
            "CREATE TABLE plain (id integer PRIMARY KEY, note varchar(40))",
            f"CREATE TABLE {DONE} (id integer PRIMARY KEY)",
            full,
            f"INSERT INTO typed VALUES (1, {values})",
            f"INSERT INTO typed VALUES (2, {nothing})",
        ),
        after=(
            (f"INSERT INTO typed VALUES (3, {values})",),
            (f"INSERT INTO typed VALUES (4, {nothing})",),
            ("UPDATE typed SET name = 'changed' WHERE id = 3",),
            ("UPDATE typed SET name = NULL WHERE id = 4", "DELETE FROM typed WHERE id = 3"),
            ("INSERT INTO plain VALUES (1, 'a'), (2, 'b')",),
            ("UPDATE plain SET note = 'c' WHERE id = 1",),
            ("UPDATE plain SET id = 10 WHERE id = 1",),
            ("DELETE FROM plain WHERE id = 2",),
            ("TRUNCATE TABLE plain",),
        ),
    )


POSTGRES: Final = _story(
    _PG_TYPES,
    "CREATE TYPE mood AS ENUM ('fine', 'so so')",
    full="ALTER TABLE typed REPLICA IDENTITY FULL",
)
MYSQL: Final = _story(_MY_TYPES, full="SELECT 1")
