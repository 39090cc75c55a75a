"""What the sources have in common: settings, the uniform door, no connection between calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.changes import ChangeStream
from tidegate.connectors.cut import ExactCut
from tidegate.connectors.protocol import Capability, OpenInfo
from tidegate.connectors.reading import LogRead
from tidegate.connectors.running import (
    ConnectorRole,
    Host,
    RunPhase,
    RunRequest,
    RunSummary,
)
from tidegate.connectors.settings import SourceSettings
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.table import TableSchema

if TYPE_CHECKING:
    from tidegate.config.secrets import Secrets

S = TypeVar("S", bound=SourceSettings)


class SourceConnector(ABC, Generic[S]):
    """The lifecycle of a ``Source``; a connector adds what its system needs.

    Holds no connection between calls, so it can be kept, and closed twice; streams and cuts close
    with their contexts.
    """

    connector_id: str
    """Its name among the entry points: ``source_type`` in a pipeline's file."""
    capabilities: frozenset[Capability] = frozenset()
    settings_type: type[S]

    def __init__(
        self, pipeline: PipelineConfig, platform: PlatformConfig, secrets: Secrets | None = None
    ) -> None:
        self.settings: S = self.settings_type.of(pipeline, platform, secrets)

    @abstractmethod
    def system(self) -> str:
        """The system and its version, e.g. ``PostgreSQL 16.4``; asked of the system itself."""

    @abstractmethod
    def discover(self, table: TableId) -> TableSchema: ...

    def discover_all(self, tables: tuple[TableId, ...]) -> Mapping[TableId, TableSchema]:
        """One by one; a connector that keeps a connection for all of them does better."""
        return {table: self.discover(table) for table in tables}

    def open(self) -> OpenInfo:
        return OpenInfo(
            connector_id=self.connector_id,
            role=ConnectorRole.SOURCE,
            system=self.system(),
            capabilities=self.capabilities,
            default_limits={"batch_bytes": self.settings.batch_bytes},
        )

    @abstractmethod
    def changes(
        self, after: Position, *, until: Position | Literal["now"] | None = None
    ) -> AbstractContextManager[ChangeStream]: ...

    def run(self, request: RunRequest, host: Host | None = None) -> RunSummary:
        """``discover``: the schemas of the tables. ``read``: the log, from the request's cursor to
        where it stands now. Tables are read by ``cut``."""
        if request.phase is RunPhase.READ:
            reading = LogRead(request, host)
            with self.changes(reading.cursor, until="now") as stream:
                return reading.drain(stream)
        if request.phase is not RunPhase.DISCOVER:
            raise ConfigError(
                "connector.phase",
                f"the {self.connector_id} source does not run the phase {request.phase}",
                hint="it runs discover and read",
            )
        names = (request.streams or self.settings.tables)[: request.max_records]
        schemas = tuple(self.discover(TableId.parse(name)) for name in names)
        return RunSummary(ConnectorRole.SOURCE, request.phase, schemas)

    def hold(
        self, tables: tuple[TableId, ...], *, head: Position
    ) -> AbstractContextManager[ExactCut]:
        raise ConfigError(
            "source.no_exact_cut",
            f"the {self.connector_id} source cannot be read at one exact position",
            hint="sweep the table instead",
        )

    def close(self) -> None:
        """Nothing is held."""
