"""OpenLineage: what a task read and wrote, for Airflow's provider where it is installed.

The provider asks an operator for these facts when a task begins and when it ends; without it nobody
asks, and nothing here is imported. Names are those of OpenLineage's naming rules for databases
(``postgres://host:port`` and ``database.schema.table``); a lake table is called as its asset is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from tidegate.airflow.hooks.source import source_secrets
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.secrets import apply_secrets
from tidegate.config.source import SourceType
from tidegate.names import CATALOG, TableId

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

LAKE: Final = f"x-iceberg://{CATALOG}"
FACET: Final = "tidegate"
_PLACES: Final = ("to_position", "cut", "position", "through")
"""Under which name an entry says where the table stands now."""


class Writes(StrEnum):
    """Where a task writes."""

    LAKE = "lake"
    LOG = "log"
    NOTHING = "nothing"


def task_lineage(
    pipeline_file: str,
    writes: Writes,
    *,
    tables: Sequence[str] | None = None,
    value: Mapping[str, Any] | None = None,
) -> OperatorLineage[Any, Any]:
    """``tables``: what the task is about, None for all of the pipeline. ``value``: its result;
    then only tables it had something to say about count, with snapshot and position.

    A lake table comes from its source table, also where the change log stands between: one log
    serves all tables, and through it everything would come from everything.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage

    pipeline = apply_secrets(*source_secrets(pipeline_file))
    entries = _entries(pipeline, tables, value)
    return OperatorLineage(
        inputs=[_source(pipeline, table) for table in entries],
        outputs=_outputs(pipeline, writes, entries),
        run_facets={FACET: _facet(pipeline, entries, value or {})},
    )


def _entries(
    pipeline: PipelineConfig, tables: Sequence[str] | None, value: Mapping[str, Any] | None
) -> dict[str, Mapping[str, Any]]:
    told = (value or {}).get("tables")
    if told:
        return {entry["table"]: entry for entry in told}
    return {table: {} for table in (tables or pipeline.source.tables)}


def _source(pipeline: PipelineConfig, table: str) -> InputDataset:
    from openlineage.client.event_v2 import InputDataset

    source, name = pipeline.source, TableId.parse(table)
    namespace = f"{source.source_type.value}://{source.host}:{source.port}"
    if source.source_type is SourceType.MYSQL:  # a schema is a database there
        return InputDataset(namespace=namespace, name=str(name))
    return InputDataset(namespace=namespace, name=f"{source.database}.{name}")


def _outputs(
    pipeline: PipelineConfig, writes: Writes, entries: Mapping[str, Mapping[str, Any]]
) -> list[OutputDataset]:
    from openlineage.client.event_v2 import OutputDataset

    match writes:
        case Writes.LAKE:
            return [_lake_table(pipeline, table, entry) for table, entry in entries.items()]
        case Writes.LOG:
            from tidegate.lake.log_table import TABLE_NAME  # with PyIceberg: not while parsing

            name = f"{pipeline.control_namespace}.{TABLE_NAME}"
            return [OutputDataset(namespace=LAKE, name=name)]
        case Writes.NOTHING:
            return []


def _lake_table(pipeline: PipelineConfig, table: str, entry: Mapping[str, Any]) -> OutputDataset:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import dataset_version_dataset

    target = pipeline.target(TableId.parse(table))
    snapshot = entry.get("snapshot_id")
    facets: dict[str, Any] = {}
    if snapshot is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(snapshot))
    return OutputDataset(namespace=LAKE, name=f"{target.namespace}.{target.name}", facets=facets)


def _facet(
    pipeline: PipelineConfig, entries: Mapping[str, Mapping[str, Any]], value: Mapping[str, Any]
) -> Any:
    """Where each table stands: a facet of our own, as OpenLineage allows them."""
    import attr
    from openlineage.client.facet_v2 import RunFacet

    @attr.define
    class TidegateRunFacet(RunFacet):
        pipeline: str
        run: str | None
        through: str | None
        positions: dict[str, str]

    return TidegateRunFacet(
        pipeline=pipeline.pipeline_id,
        run=value.get("run"),
        through=value.get("through"),
        positions={table: place for table, e in entries.items() if (place := _position(e))},
    )


def _position(entry: Mapping[str, Any]) -> str | None:
    return next((str(entry[name]) for name in _PLACES if entry.get(name)), None)
