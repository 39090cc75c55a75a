"""What the suite asks of a source server, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from tidegate.errors import ConfigError, SetupError
from tidegate.names import TableId
from tidegate.schema.types import LogicalType
from tidegate.testing.conformance.canonical import Row
from tidegate.testing.conformance.cases import Case


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where the cases' tables stand, and how names are written there."""

    schema: str
    quote: Callable[[str], str]

    def table(self, name: str) -> TableId:
        return TableId(self.schema, name)

    def sql(self, table: TableId) -> str:
        return f"{self.quote(table.schema)}.{self.quote(table.name)}"


class Server(Protocol):
    """A source server, by its URL; the user must be allowed to create databases."""

    @property
    def url(self) -> str: ...

    @property
    def label(self) -> str:
        """Its name and version, as a report prints them."""
        ...

    @property
    def version(self) -> int:
        """What ``since`` and ``until`` of a case are compared with."""
        ...

    @property
    def facts(self) -> dict[str, Any]:
        """The ``source`` block of a pipeline, without database and tables."""
        ...

    def dialect(self, database: str) -> Dialect: ...

    def lacking(self, cases: Iterable[Case]) -> dict[str, str]:
        """Cases that have no meaning on this server, each with the reason."""
        ...

    def database(self, name: str) -> AbstractContextManager[str]:
        """A database that is gone afterwards."""
        ...

    def preparation(self, cases: Sequence[Case]) -> list[str]:
        """Statements to run once in a new database."""
        ...

    def execute(self, database: str, name: str, statements: Iterable[str]) -> None:
        """Each statement in a session, and a transaction, of its own."""
        ...

    def rows(
        self, database: str, table: TableId, columns: Sequence[tuple[str, LogicalType]]
    ) -> list[Row]:
        """What the source itself prints for its rows, in the words of :mod:`canonical`."""
        ...


def unreachable(facts: Mapping[str, Any], error: Exception) -> SetupError:
    """No connection, and so no case."""
    return SetupError(
        "conformance.no_server",
        f"{facts['username']} cannot connect to {facts['host']}:{facts['port']}"
        f" ({type(error).__name__})",
        hint="check the address, user and password of --url, and that the server is up",
    )


def refused(name: str, statement: str, error: Exception) -> ConfigError:
    """A case's statement that the server does not take."""
    return ConfigError(
        "conformance.case_sql",
        f"{name}: the server refused {statement[:200]!r}: {error}",
        hint="mend the case, or limit it to servers that know this (since, until, server)",
    )
