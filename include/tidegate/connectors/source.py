"""What the sources have in common: settings, the uniform door, no connection between calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Generic, TypeVar

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.cut import ExactCut
from tidegate.connectors.protocol import (
    Capability,
    ConnectorRole,
    OpenInfo,
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

    def open(self) -> OpenInfo:
        return OpenInfo(
            connector_id=self.connector_id,
            role=ConnectorRole.SOURCE,
            system=self.system(),
            capabilities=self.capabilities,
            default_limits={"batch_bytes": self.settings.batch_bytes},
        )

    def run(self, request: RunRequest) -> RunSummary:
        """``discover``: the schemas of the tables. Reading is ``changes`` and ``cut``."""
        if request.phase is not RunPhase.DISCOVER:
            raise ConfigError(
                "connector.phase",
                f"the {self.connector_id} source does not run the phase {request.phase}",
                hint="use discover; reading goes through capture and sweep",
            )
        names = (request.streams or self.settings.tables)[: request.max_records]
        schemas = tuple(self.discover(TableId.parse(name)) for name in names)
        return RunSummary(ConnectorRole.SOURCE, request.phase, len(schemas), schemas)

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
