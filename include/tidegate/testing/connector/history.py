"""Tables, short histories, and what a connector tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

from tidegate.connectors.changes import ChangeBatch
from tidegate.connectors.protocol import Provisioned, Source
from tidegate.envelope.position import Position
from tidegate.testing.connector.subject import Subject

DEPLOYMENT: Final = "suite-deployment"
ITEMS: Final = "items"
OTHER: Final = "other"
COLUMNS: Final = "id integer PRIMARY KEY, name varchar(40), amount integer"

LogRow = dict[str, Any]
"""A row of the change log (``envelope.log_rows``)."""


def make_tables(subject: Subject, *names: str) -> None:
    for name in names:
        subject.sql(f"CREATE TABLE {subject.table(name).sql} ({COLUMNS})")


@contextmanager
def opened(subject: Subject, *tables: str, **options: Any) -> Iterator[Source]:
    """The connector over ``tables``, closed afterwards."""
    connector = subject.open(*tables, **options)
    try:
        yield connector
    finally:
        connector.close()


@contextmanager
def deployed(
    subject: Subject, *tables: str, **options: Any
) -> Iterator[tuple[Source, Provisioned]]:
    """The connector, what it needs made, and taken away afterwards."""
    with opened(subject, *tables, **options) as connector:
        made = connector.provision(DEPLOYMENT, ours=True)
        try:
            yield connector, made
        finally:
            connector.deprovision(DEPLOYMENT, ours=True)


def drained(
    connector: Source, after: Position, until: Position | Literal["now"] = "now"
) -> list[ChangeBatch]:
    """Everything after ``after``, to the end of the stream."""
    with connector.changes(after, until=until) as stream:
        return list(stream)


def in_order(batches: Iterable[ChangeBatch]) -> list[LogRow]:
    """The rows of all tables in log order."""
    rows: list[LogRow] = []
    for batch in batches:
        rows += sorted(batch.rows.to_pylist(), key=lambda row: str(row["position"]))
    return rows


def repeatable(rows: Iterable[LogRow]) -> list[LogRow]:
    """What must be the same on every reading: everything but when it was read."""
    return [{name: value for name, value in row.items() if name != "captured_at"} for row in rows]


@dataclass(frozen=True, slots=True)
class History:
    """Transactions that were written, and boundaries between them as the source named them."""

    start: Position
    boundaries: tuple[Position, ...]
    rows: list[LogRow]
    batches: list[ChangeBatch]


SCRIPT: Final = (
    ("INSERT INTO {items} VALUES (1, 'one', 10)",),
    (
        "INSERT INTO {items} VALUES (2, 'two', NULL)",
        "INSERT INTO {other} VALUES (1, '', 0)",
        "UPDATE {items} SET amount = 11 WHERE id = 1",
    ),
    ("UPDATE {items} SET name = NULL WHERE id = 2",),
    ("UPDATE {items} SET id = 20 WHERE id = 2",),
    ("DELETE FROM {items} WHERE id = 1", "INSERT INTO {items} VALUES (1, 'again', 1)"),
    ("INSERT INTO {other} VALUES (2, 'it''s \\ \"odd\" é 漢 🌊', -5)",),
    ("DELETE FROM {other} WHERE id = 1",),
)
"""Each is one transaction; in between one is rolled back."""


def write_history(subject: Subject, connector: Source, start: Position) -> History:
    """Run :data:`SCRIPT`, then read all of it."""
    names = {"items": subject.table(ITEMS).sql, "other": subject.table(OTHER).sql}
    boundaries = [start]
    for statements in SCRIPT:
        subject.transaction(*(statement.format(**names) for statement in statements))
        never = f"INSERT INTO {names['items']} VALUES (99, 'never', 0)"
        subject.transaction(never, commit=False)
        boundaries.append(connector.status(start).current)
    batches = drained(connector, start)
    through = (batch.through for batch in batches if batch.through is not None)
    return History(start, tuple(sorted({*boundaries, *through})), in_order(batches), batches)
