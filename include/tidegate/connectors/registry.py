"""Finds the connector of a pipeline: entry points of the group ``tidegate.connectors``."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, cast

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.protocol import Source
from tidegate.errors import ConfigError

if TYPE_CHECKING:
    from tidegate.config.secrets import Secrets

GROUP: Final = "tidegate.connectors"

_BUILT_IN: Final = {
    "mysql": "tidegate.connectors.mysql.connector:MysqlConnector",
    "postgres": "tidegate.connectors.postgres.connector:PostgresConnector",
}
"""Also found without installation (a checkout on the path); a driver is imported only when used."""


def open_source(
    pipeline: PipelineConfig, platform: PlatformConfig, secrets: Secrets | None = None
) -> Source:
    """The pipeline's source, not yet connected."""
    name = pipeline.source.source_type.value
    connector = _load(name)
    return cast(Source, connector(pipeline, platform, secrets))


def names() -> tuple[str, ...]:
    """Every connector that can be used here."""
    found = {entry.name for entry in entry_points(group=GROUP)}
    return tuple(sorted(found | set(_BUILT_IN)))


def _load(name: str) -> type:
    from importlib import import_module

    for entry in entry_points(group=GROUP, name=name):
        return cast(type, entry.load())
    target = _BUILT_IN.get(name)
    if target is None:
        raise ConfigError(
            "source.no_connector",
            f"there is no connector for source_type {name}",
            hint=f"available: {', '.join(names())}; others come as packages with an entry point"
            f" in the group {GROUP}",
        )
    module, _, attribute = target.partition(":")
    return cast(type, getattr(import_module(module), attribute))
