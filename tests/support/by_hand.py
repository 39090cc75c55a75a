"""A lake table as a sweep leaves it, made without Spark."""

from __future__ import annotations

from pyiceberg.schema import Schema

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.lake.catalog import ensure_namespace, open_catalog
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY, TableId


def swept_by_hand(
    pipeline: PipelineConfig, platform: PlatformConfig, table: str, schema: Schema
) -> None:
    """Empty, and standing where the table's first schema began."""
    catalog = open_catalog(platform, pipeline)
    target = pipeline.target(TableId.parse(table))
    first = SchemaHistory(catalog, pipeline).all(target.table)[0]
    ensure_namespace(catalog, target.namespace)
    lake = catalog.create_table(target.identifier, schema)
    stamp = {POSITION_PROPERTY: str(first.at), STEP_PROPERTY: "sweep"}
    lake.append(lake.scan().to_arrow(), snapshot_properties=stamp)
    catalog.close()
