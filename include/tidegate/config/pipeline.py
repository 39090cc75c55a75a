"""``pipeline.yaml``: one source, its tables, and where they go."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from tidegate.config.base import Section
from tidegate.config.sinks import (
    IcebergSink,
    MaintenanceConfig,
    SinkConfig,
    SinkType,
    TableOptions,
    WriteMode,
)
from tidegate.config.source import SourceConfig
from tidegate.names import TableId, check_pipeline_id, control_namespace, lake_table


class Schedules(Section):
    """Cron expressions (or presets) of the generated Dags; null = only by hand."""

    changes: str | None = Field("*/5 * * * *", description="Capture and apply.")
    maintenance: str | None = Field("@hourly", description="Upkeep that is due.")
    verify: str | None = Field("@daily", description="Source against lake.")


class PipelineConfig(Section):
    """The one file a user writes."""

    version: Literal[1] = Field(1, description="Version of this file's format.")
    pipeline_id: Annotated[str, AfterValidator(check_pipeline_id)]
    topic_prefix: str = Field("cdc", description="Topic prefix, used with transport_mode kafka.")
    source: SourceConfig
    sinks: tuple[SinkConfig, ...] = ()
    schedules: Schedules = Schedules()
    tags: tuple[str, ...] = Field((), description="Extra tags of the generated Dags.")
    owner: str = Field("tidegate", description="Owner of the generated Dags.")

    @model_validator(mode="after")
    def _one_lake(self) -> PipelineConfig:
        lakes = [s.sink_id for s in self.sinks if s.sink_type is SinkType.ICEBERG and s.enabled]
        if len(lakes) > 1:
            raise ValueError(f"one iceberg sink may be enabled, found {', '.join(lakes)}")
        ids = [sink.sink_id for sink in self.sinks]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"sink_id used more than once: {', '.join(twice)}")
        unknown = sorted(set(self.lake.tables) - set(self.source.tables))
        if unknown:
            raise ValueError(f"sink tables that source.tables does not list: {', '.join(unknown)}")
        targets: dict[str, str] = {}
        for table in self.source.table_ids:
            name = self.target(table).name
            if name in targets:
                raise ValueError(
                    f"{targets[name]} and {table} would both be written to {self.namespace}.{name};"
                    " use {schema} in table_name, or a table_name of their own"
                )
            targets[name] = str(table)
        return self

    @property
    def lake(self) -> IcebergSink:
        """The enabled iceberg sink, or the defaults."""
        for sink in self.sinks:
            if sink.sink_type is SinkType.ICEBERG and sink.enabled and sink.iceberg:
                return sink.iceberg
        return IcebergSink()

    @property
    def namespace(self) -> str:
        return self.lake.namespace or self.pipeline_id

    @property
    def control_namespace(self) -> str:
        return control_namespace(self.pipeline_id)

    @property
    def slot_name(self) -> str:
        return self.source.slot_name or f"tidegate_{self.pipeline_id}"

    @property
    def publication_name(self) -> str:
        return self.source.publication_name or f"tidegate_{self.pipeline_id}"

    def target(self, table: TableId) -> LakeTarget:
        """How ``table`` is written, overrides applied."""
        lake = self.lake
        own = lake.tables.get(str(table), TableOptions())
        return LakeTarget(
            source=str(table),
            namespace=self.namespace,
            name=lake_table(table, own.table_name or lake.table_name),
            write_mode=own.write_mode or lake.write_mode,
            soft_delete=lake.soft_delete if own.soft_delete is None else own.soft_delete,
            format_version=lake.format_version,
            partition_by=lake.partition_by if own.partition_by is None else own.partition_by,
            sort_by=lake.sort_by if own.sort_by is None else own.sort_by,
            properties=lake.properties,
            options=own,
            maintenance=own.maintenance or lake.maintenance,
        )

    @property
    def targets(self) -> tuple[LakeTarget, ...]:
        return tuple(self.target(table) for table in self.source.table_ids)


class LakeTarget(Section):
    """One source table's place and shape in the lake (derived, never written in YAML)."""

    source: str
    namespace: str
    name: str
    write_mode: WriteMode
    soft_delete: bool
    format_version: Literal[2, 3]
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    properties: dict[str, str]
    options: TableOptions
    maintenance: MaintenanceConfig

    @property
    def table(self) -> TableId:
        return TableId.parse(self.source)

    @property
    def identifier(self) -> tuple[str, str]:
        """PyIceberg identifier."""
        return (self.namespace, self.name)
