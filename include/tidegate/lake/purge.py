"""Tables dropped with all their files: what is a pipeline's own in the lake, and nothing else."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.lake.catalog import load
from tidegate.lake.tables import PIPELINE_PROPERTY, SOURCE_PROPERTY
from tidegate.observability import log

Identifier = tuple[str, str]

_LOG = log.get(__name__)
_FOLDERS: Final = ("data", "metadata")
"""What Iceberg keeps below a table's location."""


def own_tables(catalog: Catalog, pipeline: PipelineConfig) -> list[Identifier]:
    """The pipeline's lake tables: those its file lists, then those it listed once. Each says whose
    it is; a namespace may hold other pipelines' tables, and somebody else's."""
    listed = {target.identifier: target.source for target in pipeline.targets}
    found = {name: load(catalog, name) for name in listed}
    own = [
        name
        for name, table in found.items()
        if table is not None and _is_ours(table, pipeline.pipeline_id, listed[name])
    ]
    return own + [
        name
        for name, table in _others(catalog, pipeline.namespace, listed)
        if table.properties.get(PIPELINE_PROPERTY) == pipeline.pipeline_id
    ]


def purge(catalog: Catalog, identifier: Identifier) -> None:
    """Drop the table with its files; where the warehouse is a folder of this machine, also what
    Iceberg does not count as a file of it (checksums, leftovers of runs that died, empty folders).
    """
    table = load(catalog, identifier)
    if table is None:
        return
    warehouse = _local(str(catalog.properties.get("warehouse") or ""))
    folder = _local(table.location())
    catalog.purge_table(identifier)
    if warehouse is None or folder is None or folder != warehouse.joinpath(*identifier):
        return  # elsewhere than Tidegate puts its tables: whose folder that is, nobody knows
    for name in _FOLDERS:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
    _remove_empty(folder, warehouse)


def _is_ours(table: Table, pipeline_id: str, source: str) -> bool:
    owner = table.properties.get(PIPELINE_PROPERTY)
    if owner is None:  # made by a release that did not note it
        return table.properties.get(SOURCE_PROPERTY) == source
    return owner == pipeline_id


def _others(
    catalog: Catalog, namespace: str, listed: Iterable[Identifier]
) -> Iterable[tuple[Identifier, Table]]:
    if not catalog.namespace_exists((namespace,)):
        return
    for schema, name in catalog.list_tables((namespace,)):
        if (schema, name) in listed:
            continue
        try:
            table = load(catalog, (schema, name))
        except (OSError, ValueError) as error:
            # It cannot say whose it is, so it stays; nobody's broken table keeps ours from going.
            told = f"{schema}.{name} cannot be read and is left: {type(error).__name__}"
            log.event(_LOG, "purge", level=logging.WARNING, reason=told)
            continue
        if table is not None:
            yield (schema, name), table


def _local(location: str) -> Path | None:
    """The folder of a local location; None if it is elsewhere."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file") or not parts.path:
        return None
    return Path(unquote(parts.path)).resolve()


def _remove_empty(folder: Path, root: Path) -> None:
    """``folder``, and what is empty above it, up to the warehouse itself."""
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
