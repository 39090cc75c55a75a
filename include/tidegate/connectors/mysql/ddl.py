"""What a statement in the log means for the tables that are taken.

Row events describe their own tables, so DDL is not needed to read them. It matters where values
change and no row is sent: then the table is held until it is swept. TRUNCATE is a change like any
other. A statement that is not understood holds the tables it names (I8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tidegate.names import TableId

_CONTROL: Final = re.compile(
    r"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|XA|SET|FLUSH|GRANT|REVOKE|ANALYZE|OPTIMIZE|CHECK)\b",
    re.IGNORECASE,
)
_OTHER_OBJECT: Final = re.compile(
    r"\s*(CREATE|DROP|ALTER)\s+(OR\s+REPLACE\s+)?(DEFINER\s*=\s*\S+\s+)?(SQL\s+SECURITY\s+\w+\s+)?"
    r"(AGGREGATE\s+)?(VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT|USER|ROLE|SERVER|SEQUENCE|"
    r"ALGORITHM)\b",
    re.IGNORECASE,
)
_NEW: Final = re.compile(
    r"\s*CREATE\s+(TEMPORARY\s+)?TABLE\b|\s*(CREATE|DROP)\s+(\w+\s+)?INDEX\b", re.IGNORECASE
)
"""A table that did not exist has no rows; those it is made with are sent as rows."""
_RENAME: Final = re.compile(r"\s*RENAME\s+TABLES?\b", re.IGNORECASE)
_DROP_DATABASE: Final = re.compile(
    r"\s*DROP\s+(DATABASE|SCHEMA)\s+(IF\s+EXISTS\s+)?(?P<name>`[^`]+`|\"[^\"]+\"|\S+)",
    re.IGNORECASE,
)
_COMMENT: Final = re.compile(r"/\*(?!M?!).*?\*/", re.DOTALL)
_VERSIONED: Final = re.compile(r"/\*M?!\d*(.*?)\*/", re.DOTALL)

REWRITES: Final = "changes values without sending rows"
DROPPED: Final = "dropped the table"
RENAMED: Final = "renamed the table, or another to its name"
STATEMENT: Final = "was logged as a statement (binlog_format is not ROW): its rows were not sent"
NOT_UNDERSTOOD: Final = "is not understood"


@dataclass(slots=True)
class Effects:
    """Of one statement."""

    truncated: list[TableId] = field(default_factory=list)
    held: dict[TableId, str] = field(default_factory=dict)


def effects(sql: str, database: str, taken: Iterable[TableId]) -> Effects:
    """``database`` is the one that names without a database mean."""
    if _CONTROL.match(sql):
        return Effects()
    dropped = _DROP_DATABASE.match(sql)
    if dropped is not None:
        name = dropped["name"].strip('`";')
        return Effects(held={table: DROPPED for table in taken if table.schema == name})
    named = [table for table in taken if _names(sql, table.name)]
    if not named or _OTHER_OBJECT.match(sql) or _NEW.match(sql):
        return Effects()
    if _RENAME.match(sql):
        return Effects(held=dict.fromkeys(named, RENAMED))
    parsed = _parsed(sql)
    if parsed is None:
        return Effects(held=dict.fromkeys(named, f"{_verb(sql)}: {NOT_UNDERSTOOD}"))
    return _effects(parsed, database, named)


def _parsed(sql: str) -> exp.Expr | None:
    plain = _COMMENT.sub(" ", _VERSIONED.sub(r" \1 ", sql))
    try:
        found = sqlglot.parse_one(plain, read="mysql")
    except SqlglotError:
        return None
    return None if isinstance(found, exp.Command) else found


def _effects(parsed: exp.Expr, database: str, named: list[TableId]) -> Effects:
    result = Effects()
    touched = [table for table in named if table in _tables(parsed, database)]
    match parsed:
        case exp.TruncateTable():
            result.truncated = touched
        case exp.Drop() if parsed.kind == "TABLE":
            result.held = dict.fromkeys(touched, DROPPED)
        case exp.Create() if parsed.kind == "TABLE" and parsed.args.get("replace"):
            result.held = dict.fromkeys(touched[:1], DROPPED)
        case exp.Alter() if parsed.args.get("kind") == "TABLE":
            why = _alteration(parsed)
            result.held = dict.fromkeys(touched, why) if why else {}
        case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge():
            result.held = dict.fromkeys(touched, STATEMENT)
        case exp.Drop():
            pass  # an index
        case _:
            result.held = dict.fromkeys(touched, f"{parsed.key.upper()}: {NOT_UNDERSTOOD}")
    return result


def _alteration(parsed: exp.Alter) -> str | None:
    """Why an ALTER TABLE needs a sweep; None if it changes no value of an existing row."""
    actions = parsed.args.get("actions") or []
    if not actions:
        return f"ALTER TABLE: {NOT_UNDERSTOOD}"
    for action in actions:
        if isinstance(action, exp.AlterRename):
            return RENAMED
        if not _harmless(action):
            return f"ALTER TABLE {REWRITES}"
    return None


def _harmless(action: exp.Expr) -> bool:
    if isinstance(action, exp.ColumnDef):
        return _filled_with_null(action)
    if isinstance(action, exp.Drop):  # a column (the schema's policy decides) or an index
        return action.kind in ("COLUMN", "INDEX", "KEY", "CONSTRAINT", "FOREIGN KEY", "CHECK")
    if isinstance(action, exp.AddConstraint):
        return not action.find(exp.PrimaryKey)  # a new key is another identity
    return isinstance(action, exp.IndexColumnConstraint | exp.AlterIndex)


def _filled_with_null(column: exp.ColumnDef) -> bool:
    """Rows that exist have NULL in a new column, unless it says otherwise."""
    for constraint in column.find_all(exp.ColumnConstraint):
        kind = constraint.kind
        if isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null"):
            return False
        if isinstance(kind, exp.DefaultColumnConstraint):
            if not isinstance(kind.this, exp.Null):
                return False
        elif isinstance(
            kind,
            exp.ComputedColumnConstraint
            | exp.GeneratedAsIdentityColumnConstraint
            | exp.AutoIncrementColumnConstraint
            | exp.PrimaryKeyColumnConstraint,
        ):
            return False
    return True


def _tables(parsed: exp.Expr, database: str) -> set[TableId]:
    return {TableId(table.db or database, table.name) for table in parsed.find_all(exp.Table)}


def _names(sql: str, name: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", sql, re.IGNORECASE) is not None


def _verb(sql: str) -> str:
    """The statement's first two words: never its values (I9)."""
    return " ".join(re.findall(r"[A-Za-z_]+", sql)[:2]).upper()
