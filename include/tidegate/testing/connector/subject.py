"""What a connector's author gives the suite: a real source, and how to work on it.

A subject is one fresh source without tables. The suite writes plain SQL that every database takes
(``integer``, ``varchar(40)``, one statement each) through connections of the subject's own driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import Cut
from tidegate.connectors.protocol import Source
from tidegate.connectors.registry import open_source
from tidegate.errors import Decision
from tidegate.names import TableId


@dataclass(frozen=True, slots=True)
class TypeSample:
    """A column type and literals of it, as the source's SQL writes them."""

    type: str
    literals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong address or credential: keys of ``source:`` to set, and what one should do then."""

    name: str
    source: Mapping[str, Any] = field(repr=False)
    decision: Decision


@dataclass(frozen=True, slots=True)
class Fault:
    """A way in which the other side goes away while it is read: a reader must notice within the
    context, and after it the source works again."""

    name: str
    strike: Callable[[], AbstractContextManager[None]]


class Subject(ABC):
    """One fresh source."""

    source_type: str
    interleaves: bool = True
    """Whether two transactions can write at the same time."""

    @abstractmethod
    def table(self, name: str) -> TableId:
        """A table's full name."""

    @abstractmethod
    def source(self) -> dict[str, Any]:
        """Keys of ``source:`` that lead to this source, without tables."""

    @abstractmethod
    def connect(self) -> Any:
        """A DB-API connection of a user who may do everything, without autocommit."""

    @abstractmethod
    def reader(self, cut: Cut) -> AbstractContextManager[Any]:
        """A DB-API connection that sees what a task of a sweep would see at ``cut``, its session
        set like the connector's own."""

    @abstractmethod
    def objects(self) -> set[str]:
        """Everything a deployment can leave at the source: tables, triggers, slots …, by name."""

    @abstractmethod
    def types(self) -> tuple[TypeSample, ...]:
        """Types that the connector supports, with their corners."""

    @abstractmethod
    def mistakes(self) -> tuple[Mistake, ...]:
        """Wrong addresses and credentials."""

    @abstractmethod
    def faults(self) -> tuple[Fault, ...]:
        """What can break a stream."""

    def sql(self, *statements: str) -> None:
        """Each statement in a transaction of its own."""
        for statement in statements:
            self.transaction(statement)

    def transaction(self, *statements: str, commit: bool = True) -> None:
        """All statements in one transaction."""
        connection = self.connect()
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            connection.commit() if commit else connection.rollback()
        finally:
            connection.close()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()]
        finally:
            connection.close()

    def pipeline(self, *tables: str, pipeline_id: str = "suite", **source: Any) -> PipelineConfig:
        """A pipeline over ``tables``."""
        return PipelineConfig.model_validate(
            {
                "pipeline_id": pipeline_id,
                "source": {
                    "source_type": self.source_type,
                    **self.source(),
                    "tables": [str(self.table(name)) for name in tables],
                    **source,
                },
            }
        )

    def open(self, *tables: str, batch_bytes: int | None = None, **pipeline: Any) -> Source:
        """The connector under test, found as the product finds it."""
        limits = {} if batch_bytes is None else {"capture": {"max_batch_bytes": batch_bytes}}
        platform = PlatformConfig.model_validate(limits)
        return open_source(self.pipeline(*tables, **pipeline), platform)
