"""What the MySQL connector needs to know, taken from the pipeline and the platform."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from pydantic import Field, SecretStr

from tidegate.config.base import Section
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import WriteMode
from tidegate.names import TableId

if TYPE_CHECKING:
    from tidegate.config.secrets import Secrets

PINNED: Final[dict[str, str]] = {
    # What decides how values are printed: the log path and the sweep must print alike (I6).
    "time_zone": "'+00:00'",
    # Double quotes are identifiers, as in every other SQL of ours; a backslash is a character.
    "sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    "sql_quote_show_create": "1",
}
"""Session settings, the same on every connection to the source."""

_SERVER_IDS: Final = 1 << 30
"""Derived ids lie above these, away from what people choose."""


class MysqlSettings(Section):
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
    not_upsert: frozenset[str] = Field(description="Tables that are no plain upsert.")
    server_id: int = Field(description="Ours, among the replicas of the source.")
    slot: str
    batch_bytes: int = Field(description="Raw log bytes decoded at once.")
    max_value_bytes: int
    lock_timeout_seconds: float
    max_snapshot_seconds: float

    @property
    def other_server_id(self) -> int:
        """For looks into the log beside a capture: the server ends the older of two replicas of
        one number."""
        return self.server_id ^ _SERVER_IDS

    @property
    def table_ids(self) -> tuple[TableId, ...]:
        return tuple(TableId.parse(table) for table in self.tables)

    @classmethod
    def of(
        cls, pipeline: PipelineConfig, platform: PlatformConfig, secrets: Secrets | None
    ) -> MysqlSettings:
        """The connection's own values win over the file's."""
        if secrets is not None:
            from tidegate.config.secrets import apply_secrets

            pipeline = apply_secrets(pipeline, secrets)
        source = pipeline.source
        others = {
            t.source
            for t in pipeline.targets
            if t.write_mode is not WriteMode.UPSERT or t.soft_delete
        }
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
            not_upsert=frozenset(others),
            server_id=source.server_id or derived_server_id(pipeline.pipeline_id),
            slot=pipeline.slot_name,
            batch_bytes=platform.capture.max_batch_bytes,
            max_value_bytes=platform.capture.max_value_bytes,
            lock_timeout_seconds=platform.sweep.lock_timeout_seconds,
            max_snapshot_seconds=platform.sweep.max_snapshot_seconds,
        )


def derived_server_id(pipeline_id: str) -> int:
    """The same for the same pipeline; two pipelines of one source rarely share it."""
    digest = hashlib.sha256(pipeline_id.encode()).digest()
    return _SERVER_IDS + int.from_bytes(digest[:4], "big") % _SERVER_IDS
