"""The definition of a column in ALTER TABLE … ADD: what rows that exist have in it."""

from __future__ import annotations

from typing import Final

from tidegate.connectors.mysql.sql_cursor import Cursor, NotUnderstood
from tidegate.connectors.mysql.sql_lexer import Kind
from tidegate.connectors.mysql.statement_effects import CASCADES, REWRITES

_OF_TYPES: Final = frozenset(
    {"UNSIGNED", "SIGNED", "ZEROFILL", "BINARY", "ASCII", "UNICODE", "BYTE"}
    | {"COMPRESSED", "INVISIBLE", "VISIBLE"}
)
"""Words that say nothing of a value."""
_SECOND_WORDS: Final = frozenset(
    {"VARYING", "PRECISION", "VARCHAR", "VARCHARACTER", "CHAR", "CHARACTER", "VARBINARY"}
)
"""Of types: NATIONAL CHARACTER VARYING, DOUBLE PRECISION, LONG VARCHAR."""
_WITH_VALUE: Final = frozenset(
    {"COLLATE", "CHARSET", "COMMENT", "COLUMN_FORMAT", "STORAGE", "SRID", "REF_SYSTEM_ID"}
    | {"ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"}
)
_CHANGES_ROWS: Final = (("CASCADE",), ("SET", "NULL"), ("SET", "DEFAULT"))
_FILLED: Final = (
    ("NOT", "NULL"),
    ("AUTO_INCREMENT",),
    ("SERIAL",),
    ("PRIMARY",),
    ("KEY",),
    ("GENERATED",),
    ("AS",),
    ("DEFAULT",),
)
"""What gives rows that exist a value, or takes NULL away."""


def added(cursor: Cursor, *, explicit_timestamps: bool) -> tuple[str, str | None]:
    """The column's name, and why rows that exist are not NULL in it; None: they are."""
    name = cursor.name()
    type_ = cursor.take()
    if type_.kind is not Kind.WORD:
        raise NotUnderstood
    while not cursor.has("CHARACTER", "SET") and cursor.one_of(_SECOND_WORDS):
        pass
    cursor.parentheses()
    if type_.word == "SERIAL":
        return name, f"ALTER TABLE {REWRITES}"
    why, nullable = None, False
    while not cursor.ended:
        found = _attribute(cursor)
        nullable = nullable or found == "NULL"
        if found not in (None, "NULL"):
            why = why or found
    if type_.word == "TIMESTAMP" and not nullable and not explicit_timestamps:
        why = why or f"ALTER TABLE {REWRITES}"
    return name, why


def _attribute(cursor: Cursor) -> str | None:
    """Read one. Why it fills rows, or ``NULL`` where it says that they may be; else None."""
    if cursor.skip("NULL") or cursor.skip("DEFAULT", "NULL"):
        return "NULL"
    if any(cursor.has(*words) for words in _FILLED):
        while not cursor.ended:  # whatever follows, there are values
            cursor.take()
        return f"ALTER TABLE {REWRITES}"
    if cursor.has("REFERENCES"):
        return references(cursor)
    _harmless(cursor)
    return None


def _harmless(cursor: Cursor) -> None:
    if cursor.skip("CHARACTER", "SET") or cursor.one_of(_WITH_VALUE):
        cursor.value()
    elif cursor.skip("ON", "UPDATE"):
        cursor.name()
        cursor.parentheses()
    elif cursor.skip("UNIQUE"):
        cursor.skip("KEY")
    elif cursor.skip("AFTER"):
        cursor.name()
    elif cursor.skip("CONSTRAINT"):
        if not cursor.has("CHECK"):
            cursor.name()
    elif cursor.skip("CHECK"):
        if not cursor.parentheses():
            raise NotUnderstood
        cursor.skip("NOT")
        cursor.skip("ENFORCED")
    elif not cursor.skip("FIRST") and not cursor.one_of(_OF_TYPES):
        raise NotUnderstood


def references(cursor: Cursor) -> str | None:
    """``REFERENCES …``: why it may change rows without a trace; None: it does not."""
    if not cursor.skip("REFERENCES"):
        raise NotUnderstood
    cursor.table()
    cursor.parentheses()
    why = None
    while cursor.has("ON") or cursor.has("MATCH"):
        if cursor.skip("MATCH"):
            cursor.name()
            continue
        if not (cursor.skip("ON", "DELETE") or cursor.skip("ON", "UPDATE")):
            break
        if any(cursor.skip(*words) for words in _CHANGES_ROWS):
            why = CASCADES
        elif not (cursor.skip("RESTRICT") or cursor.skip("NO", "ACTION")):
            raise NotUnderstood
    return why
