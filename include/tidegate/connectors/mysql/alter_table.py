"""ALTER TABLE, action by action: which change values, or take rows, without sending them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.connectors.mysql.column_definitions import added, references
from tidegate.connectors.mysql.sql_cursor import Cursor, Named, NotUnderstood
from tidegate.connectors.mysql.sql_lexer import Kind
from tidegate.connectors.mysql.statement_effects import (
    ENGINE,
    KEY,
    NOT_UNDERSTOOD,
    RENAMED,
    REWRITES,
    ROWS_GONE,
)

_INNODB: Final = "INNODB"
_PRIMARY: Final = "primary"
_NAMES_ITSELF: Final = frozenset({"INDEX", "KEY", "FOREIGN", "CHECK", "CONSTRAINT"})
_NOTHING: Final = "nothing"
_MOVES_NO_ROW: Final = frozenset(
    {"COALESCE", "REORGANIZE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR"}
)
"""What may be done with partitions: every row stays in the table."""
_OPTIONS: Final = frozenset(
    {"AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHARSET", "CHECKSUM", "COLLATE"}
    | {"COMMENT", "COMPRESSION", "DELAY_KEY_WRITE", "ENCRYPTED", "ENCRYPTION", "ENCRYPTION_KEY_ID"}
    | {"ENGINE_ATTRIBUTE", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM"}
    | {"PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ROW_FORMAT", "STATS_AUTO_RECALC"}
    | {"STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "TABLE_CHECKSUM", "TRANSACTIONAL"}
    | {"ALGORITHM", "LOCK", "SECONDARY_ENGINE_ATTRIBUTE"}
)
"""``name [=] value``, and rows are what they were."""


@dataclass(slots=True)
class Alteration:
    """What one ALTER TABLE does to its table."""

    why: str | None = None  # it needs a sweep; None: it changes no value of a row that exists
    left: set[str] = field(default_factory=set)  # columns, in lower case
    came: set[str] = field(default_factory=set)
    others: list[Named] = field(default_factory=list)
    """Tables whose rows it takes, or whose name it gives to this one."""


class _Actions:
    """Each method reads one action to its end, and returns why it needs a sweep."""

    def __init__(self, *, explicit_timestamps: bool) -> None:
        self.found = Alteration()
        self._explicit = explicit_timestamps

    def read(self, cursor: Cursor) -> str | None:
        reader = _READERS.get(cursor.peek().word)
        if reader is None:
            return self._options(cursor)
        cursor.take()
        return reader(self, cursor)

    def add(self, cursor: Cursor) -> str | None:
        if cursor.peek().kind is Kind.WORD and not cursor.has("COLUMN"):
            known = self._add_other(cursor)
            if known is not None:
                return None if known is _NOTHING else known
        cursor.skip("COLUMN")
        cursor.skip("IF", "NOT", "EXISTS")
        if cursor.peek().is_sign("("):
            return self._add_several(cursor)
        name, why = added(cursor, explicit_timestamps=self._explicit)
        self.found.came.add(name.lower())
        return why

    def _add_several(self, cursor: Cursor) -> str | None:
        inner = Cursor(cursor.rest[1:-1])
        if not cursor.parentheses():
            raise NotUnderstood
        cursor.end()
        whys = [self.add(part) for part in inner.parts()]
        return next((why for why in whys if why), None)

    def _add_other(self, cursor: Cursor) -> str | None:
        """What is no column; None if it is one."""
        if cursor.skip("CONSTRAINT"):
            cursor.skip("IF", "NOT", "EXISTS")
            if not any(cursor.has(word) for word in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")):
                cursor.name()
        if cursor.skip("PRIMARY", "KEY"):
            return f"ALTER TABLE {KEY}"
        if cursor.skip("FOREIGN", "KEY"):
            return self._foreign_key(cursor)
        if cursor.one_of({"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "CHECK"}):
            return _NOTHING
        if cursor.skip("PARTITION"):
            new = cursor.peek().is_sign("(") or cursor.peek().word in (
                "IF",
                "PARTITIONS",
                "NO_WRITE_TO_BINLOG",
                "LOCAL",
            )
            return _NOTHING if new else _unknown()
        if cursor.has("SYSTEM", "VERSIONING") or cursor.has("PERIOD", "FOR"):
            return _unknown()
        return None

    def _foreign_key(self, cursor: Cursor) -> str:
        cursor.skip("IF", "NOT", "EXISTS")
        if not cursor.peek().is_sign("("):
            cursor.name()
        if not cursor.parentheses():
            raise NotUnderstood
        why = references(cursor)
        cursor.end()
        return why or _NOTHING

    def drop(self, cursor: Cursor) -> str | None:
        if cursor.skip("PRIMARY", "KEY"):
            return f"ALTER TABLE {KEY}"
        if cursor.skip("PARTITION"):
            return f"ALTER TABLE … DROP PARTITION {ROWS_GONE}"
        if cursor.has("SYSTEM", "VERSIONING") or cursor.has("PERIOD", "FOR"):
            return _unknown()
        if cursor.one_of(_NAMES_ITSELF):
            cursor.skip("KEY")
            cursor.skip("IF", "EXISTS")
            return f"ALTER TABLE {KEY}" if cursor.name().lower() == _PRIMARY else None
        cursor.skip("COLUMN")
        cursor.skip("IF", "EXISTS")
        self.found.left.add(cursor.name().lower())
        cursor.one_of({"RESTRICT", "CASCADE"})
        cursor.end()
        return None

    def change(self, cursor: Cursor) -> str:
        cursor.skip("COLUMN")
        cursor.skip("IF", "EXISTS")
        self._renamed(cursor.name().lower(), cursor.name().lower())
        return f"ALTER TABLE {REWRITES}"

    def _renamed(self, old: str, new: str) -> None:
        if old != new:
            self.found.left.add(old)
            self.found.came.add(new)

    def rewrite(self, cursor: Cursor) -> str:
        return f"ALTER TABLE {REWRITES}"

    def alter(self, cursor: Cursor) -> str | None:
        """A default, or whether something is used: rows are what they were."""
        if not cursor.one_of({"INDEX", "KEY", "CHECK", "CONSTRAINT"}):
            cursor.skip("COLUMN")
        cursor.skip("IF", "EXISTS")
        cursor.name()
        cursor.skip("NOT")
        word = cursor.take().word
        if word not in ("SET", "DROP", "VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED"):
            raise NotUnderstood
        if word in ("SET", "DROP") and not cursor.one_of({"DEFAULT", "VISIBLE", "INVISIBLE"}):
            raise NotUnderstood
        return None

    def rename(self, cursor: Cursor) -> str | None:
        if cursor.one_of({"INDEX", "KEY"}):
            return None
        if cursor.skip("COLUMN"):
            cursor.skip("IF", "EXISTS")
            old = cursor.name().lower()
            if not cursor.skip("TO"):
                raise NotUnderstood
            self._renamed(old, cursor.name().lower())
            return f"ALTER TABLE {REWRITES}"
        if not cursor.one_of({"TO", "AS"}):
            cursor.sign("=")
        self.found.others.append(cursor.table())
        cursor.end()
        return RENAMED

    def partitions(self, cursor: Cursor) -> str | None:
        return None if cursor.skip("PARTITION") else _unknown()

    def exchange(self, cursor: Cursor) -> str:
        """Rows come from another table, or go to one."""
        while not cursor.ended:
            if cursor.skip("TABLE"):
                self.found.others.append(cursor.table())
            else:
                cursor.take()
        return f"ALTER TABLE {ROWS_GONE}"

    def remove(self, cursor: Cursor) -> str | None:
        return None if cursor.skip("PARTITIONING") else _unknown()

    def partition_by(self, cursor: Cursor) -> str | None:
        return None if cursor.skip("BY") else _unknown()

    def nothing(self, cursor: Cursor) -> str | None:
        """FORCE, ENABLE KEYS, WITH VALIDATION: one or two words."""
        cursor.one_of({"KEYS", "VALIDATION"})
        cursor.end()
        return None

    def _options(self, cursor: Cursor) -> str | None:
        """Options of the table stand side by side, with or without commas."""
        why = None
        while not cursor.ended:
            why = self._option(cursor) or why
        return why

    def _option(self, cursor: Cursor) -> str | None:
        default = cursor.skip("DEFAULT")
        if cursor.skip("CHARACTER", "SET") or cursor.one_of(_OPTIONS):
            cursor.value()
        elif default:
            raise NotUnderstood
        elif cursor.one_of({"DATA", "INDEX"}):
            if not cursor.skip("DIRECTORY"):
                raise NotUnderstood
            cursor.value()
        elif cursor.skip("ENGINE"):
            return None if cursor.value().text.upper() == _INNODB else f"ALTER TABLE {ENGINE}"
        elif cursor.has("PARTITION", "BY") or cursor.has("REMOVE", "PARTITIONING"):
            while not cursor.ended:
                cursor.take()
        else:
            raise NotUnderstood
        return None


def _unknown() -> str:
    raise NotUnderstood


_READERS: Final[Mapping[str, Callable[[_Actions, Cursor], str | None]]] = {
    "ADD": _Actions.add,
    "DROP": _Actions.drop,
    "MODIFY": _Actions.rewrite,
    "CHANGE": _Actions.change,
    "ALTER": _Actions.alter,
    "RENAME": _Actions.rename,
    **dict.fromkeys(sorted(_MOVES_NO_ROW), _Actions.partitions),
    **dict.fromkeys(("EXCHANGE", "TRUNCATE", "DISCARD", "IMPORT", "CONVERT"), _Actions.exchange),
    "REMOVE": _Actions.remove,
    "PARTITION": _Actions.partition_by,
    **dict.fromkeys(("FORCE", "ENABLE", "DISABLE", "WITH", "WITHOUT", "NOWAIT"), _Actions.nothing),
}


def alteration(cursor: Cursor, *, explicit_timestamps: bool) -> Alteration:
    """Everything behind the table's name."""
    actions = _Actions(explicit_timestamps=explicit_timestamps)
    if cursor.ended:
        return actions.found
    # What is done with partitions stands alone, and lists them with commas.
    alone = cursor.peek(1).word == "PARTITION"
    for part in [cursor] if alone else cursor.parts():
        try:
            why = actions.read(part) if not part.ended else _unknown()
        except NotUnderstood:
            why = f"ALTER TABLE: {NOT_UNDERSTOOD}"
        actions.found.why = actions.found.why or why
    return actions.found
