"""What every source needs to know, taken from the pipeline and the platform.

A connector's own model adds its fields. Those it derives from the file it gives in :meth:`own`; the
others are what ``source.options`` may set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, SecretStr, ValidationError

from tidegate.config.base import Section
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.source_types import BUILT_IN, nearest
from tidegate.errors import ConfigError
from tidegate.names import TableId

if TYPE_CHECKING:
    from tidegate.config.secrets import Secrets


class SourceSettings(Section):
    """Strict and frozen; the password never leaves it but into a connection (I9)."""

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
    batch_bytes: int = Field(description="Raw log bytes decoded at once.")
    max_value_bytes: int
    lock_timeout_seconds: float
    cut_timeout_seconds: float
    max_snapshot_seconds: float

    @property
    def table_ids(self) -> tuple[TableId, ...]:
        return tuple(TableId.parse(table) for table in self.tables)

    @classmethod
    def own(cls, pipeline: PipelineConfig, platform: PlatformConfig) -> dict[str, Any]:
        """Fields of the connector's own that the file's other keys decide."""
        return {}

    @classmethod
    def of(
        cls, pipeline: PipelineConfig, platform: PlatformConfig, secrets: Secrets | None
    ) -> Self:
        """The connection's own values win over the file's."""
        if secrets is not None:
            from tidegate.config.secrets import apply_secrets

            pipeline = apply_secrets(pipeline, secrets)
        source, own = pipeline.source, cls.own(pipeline, platform)
        if source.password is None and source.source_type in BUILT_IN:
            raise ConfigError(
                "secrets.no_password",
                f"neither the connection {source.connection_id} nor the file gives a password",
                hint='add one to the connection; or write password: "" beside connection_id where'
                " the server asks for none",
            )
        cls._check_options(source.source_type, source.options, own)
        try:
            return cls(
                pipeline_id=pipeline.pipeline_id,
                host=source.host,
                port=source.port,
                database=source.database,
                username=source.username,
                password=source.password or SecretStr(""),
                sslmode=source.sslmode,
                sslrootcert=source.sslrootcert,
                connect_timeout_seconds=source.connect_timeout_seconds,
                tables=source.tables,
                batch_bytes=platform.capture.max_batch_bytes,
                max_value_bytes=platform.capture.max_value_bytes,
                lock_timeout_seconds=platform.sweep.lock_timeout_seconds,
                cut_timeout_seconds=platform.sweep.cut_timeout_seconds,
                max_snapshot_seconds=platform.sweep.max_snapshot_seconds,
                **own,
                **source.options,
            )
        except ValidationError as error:
            raise _wrong(error) from None  # the cause would quote values (I9)

    @classmethod
    def _check_options(cls, kind: str, options: dict[str, Any], own: dict[str, Any]) -> None:
        known = set(cls.model_fields) - set(SourceSettings.model_fields) - set(own)
        for name in sorted(set(options) - known):
            close = nearest(name, known)
            takes = f"{kind} takes {', '.join(sorted(known))}" if known else f"{kind} takes none"
            raise ConfigError(
                "source.option",
                f"source.options.{name} is not an option of {kind}",
                hint=f"did you mean {close}? {takes}" if close else takes,
            )


def _wrong(error: ValidationError) -> ConfigError:
    told = "; ".join(
        f"source.options.{'.'.join(map(str, one['loc']))}: {one['msg']}"
        for one in error.errors(include_input=False, include_context=False)
    )
    return ConfigError("source.option", told, hint="correct source.options in the pipeline's file")
