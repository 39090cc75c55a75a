"""What the PostgreSQL connector needs to know, taken from the pipeline and the platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import Field, SecretStr

from tidegate.config.base import Section
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import WriteMode
from tidegate.names import TableId

if TYPE_CHECKING:
    from tidegate.config.secrets import Secrets

MIN_VERSION: Final = 14
MAX_VERSION: Final = 18

PINNED: Final[dict[str, str]] = {
    # What decides how values are printed: the log path and the sweep must print alike (I6).
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    "search_path": "pg_catalog",
    # A policy on a table must be an error, never a silent filter.
    "row_security": "off",
}
"""Session settings, the same on every connection to the source."""

UNBOUNDED: Final[dict[str, str]] = {
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}
"""A role's own limits must not end a cut; ours (``cut_timeout_seconds`` …) do."""


class PostgresSettings(Section):
    """Strict and frozen; the password never leaves it but into a connection."""

    pipeline_id: str
    host: str
    port: int
    database: str
    username: str
    password: SecretStr
    sslmode: str
    sslrootcert: str | None
    connect_timeout_seconds: int
    tables: tuple[str, ...]
    append_only: frozenset[str] = Field(description="Tables written in append mode.")
    slot: str
    publication: str
    ddl_messages: bool = Field(description="Whether to install the event trigger where we may.")
    batch_bytes: int = Field(description="Raw log bytes decoded at once.")
    max_value_bytes: int
    lock_timeout_seconds: float
    cut_timeout_seconds: float
    max_snapshot_seconds: float

    @property
    def table_ids(self) -> tuple[TableId, ...]:
        return tuple(TableId.parse(table) for table in self.tables)

    @classmethod
    def of(
        cls, pipeline: PipelineConfig, platform: PlatformConfig, secrets: Secrets | None
    ) -> PostgresSettings:
        """The connection's own values win over the file's."""
        if secrets is not None:
            from tidegate.config.secrets import apply_secrets

            pipeline = apply_secrets(pipeline, secrets)
        source = pipeline.source
        append = {t.source for t in pipeline.targets if t.write_mode is WriteMode.APPEND}
        return cls(
            pipeline_id=pipeline.pipeline_id,
            host=source.host,
            port=source.port,
            database=source.database,
            username=source.username,
            password=source.password,
            sslmode=source.sslmode,
            sslrootcert=source.sslrootcert,
            connect_timeout_seconds=source.connect_timeout_seconds,
            tables=source.tables,
            append_only=frozenset(append),
            slot=pipeline.slot_name,
            publication=pipeline.publication_name,
            ddl_messages=source.ddl_messages == "auto",
            batch_bytes=platform.capture.max_batch_bytes,
            max_value_bytes=platform.capture.max_value_bytes,
            lock_timeout_seconds=platform.sweep.lock_timeout_seconds,
            cut_timeout_seconds=platform.sweep.cut_timeout_seconds,
            max_snapshot_seconds=platform.sweep.max_snapshot_seconds,
        )
