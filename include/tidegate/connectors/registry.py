"""Finds the connector of a pipeline: entry points of the group ``tidegate.connectors``."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, cast

from tidegate.config import source_types
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.connectors.distance import Distance, by_number
from tidegate.connectors.protocol import Source
from tidegate.errors import ConfigError

if TYPE_CHECKING:
    from tidegate.config.secrets import Secrets

_BUILT_IN: Final = {
    source_types.MYSQL: "tidegate.connectors.mysql.connector:MysqlConnector",
    source_types.POSTGRES: "tidegate.connectors.postgres.connector:PostgresConnector",
}
"""A driver is imported only when its connector is used."""
_DISTANCES: Final = {
    source_types.MYSQL: "tidegate.connectors.mysql.distance:distance",
    source_types.POSTGRES: "tidegate.connectors.distance:by_number",
}
"""Of the built-in ones: known without their drivers."""


def open_source(
    pipeline: PipelineConfig, platform: PlatformConfig, secrets: Secrets | None = None
) -> Source:
    """The pipeline's source, not yet connected."""
    connector = _load(pipeline.source.source_type)
    return cast(Source, connector(pipeline, platform, secrets))


def distance(source_type: str) -> Distance:
    """How bytes between positions of such a source are told."""
    if source_type in _DISTANCES:
        return cast(Distance, _imported(_DISTANCES[source_type]))
    return cast(Distance, getattr(_load(source_type), "distance", by_number))


def _load(name: str) -> type:
    for entry in entry_points(group=source_types.GROUP, name=name):
        return cast(type, entry.load())
    target = _BUILT_IN.get(name)
    if target is None:
        raise ConfigError(
            "source.no_connector",
            f"there is no connector for source_type {name}",
            hint=f"available: {', '.join(source_types.names())}; others come as packages with an"
            f" entry point in the group {source_types.GROUP}",
        )
    return cast(type, _imported(target))


def _imported(target: str) -> object:
    from importlib import import_module

    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
