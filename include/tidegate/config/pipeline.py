"""``pipeline.yaml``: one source, its tables, and where they go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from tidegate.config.base import Issue, Section, WrongTogether
from tidegate.config.schema_changes import Compatibility, SchemaChanges
from tidegate.config.sinks import (
    IcebergSink,
    MaintenanceConfig,
    Policies,
    SinkConfig,
    SinkType,
    TableOptions,
    WriteMode,
)
from tidegate.config.source import SourceConfig
from tidegate.config.verify import VerifyConfig
from tidegate.names import TableId, check_pipeline_id, control_namespace, lake_table

CHANGES_SCHEDULE: Final = "*/5 * * * *"
"""Fresh enough for dashboards; each run costs one Spark start (about ten seconds)."""
MAINTENANCE_SCHEDULE: Final = "@hourly"
"""As often as the shortest upkeep interval; a run in which nothing is due ends at once."""
VERIFY_SCHEDULE: Final = "@daily"
"""A comparison reads every row of the source."""
RELOAD_SCHEDULE: Final = "@daily"
"""A run reads the rows of the day before again."""
SCHEMA_SCHEDULE: Final = "@daily"
"""A few catalog queries: no rows are read and no Spark is started."""

LAKE_ID: Final = "lake"
"""The sink of a pipeline whose file names none."""

_SCHEDULE = re.compile(
    r"@(once|continuous|hourly|daily|weekly|monthly|quarterly|yearly)|\S+( \S+){4}"
)


def _schedule(value: str | None) -> str | None:
    if value is not None and not _SCHEDULE.fullmatch(value.strip()):
        raise ValueError("write five cron fields (*/5 * * * *), a preset like @hourly, or null")
    return value


Schedule = Annotated[str | None, AfterValidator(_schedule)]


class Schedules(Section):
    """Cron expressions (or presets) of the generated Dags; null = only by hand."""

    changes: Schedule = Field(CHANGES_SCHEDULE, description="Capture and apply.")
    maintenance: Schedule = Field(MAINTENANCE_SCHEDULE, description="Upkeep that is due.")
    verify: Schedule = Field(VERIFY_SCHEDULE, description="Source against lake.")
    reload: Schedule = Field(
        RELOAD_SCHEDULE,
        description="Rows of an interval again, where a table has reload.time_column; periodic, or"
        " backfills are refused.",
    )
    schema_check: Schedule = Field(
        SCHEMA_SCHEDULE, description="The live source's schema against the lake's."
    )


class PipelineConfig(Section):
    """The one file a user writes."""

    version: Literal[1] = Field(1, description="Version of this file's format.")
    pipeline_id: Annotated[str, AfterValidator(check_pipeline_id)] = Field(
        description="Names the pipeline, its Dags, its slot and its Iceberg namespaces;"
        " 1 to 40 of a-z, 0-9 and _, beginning with a letter."
    )
    topic_prefix: str = Field("cdc", description="Topic prefix, used with transport_mode kafka.")
    source: SourceConfig = Field(description="The database and the tables taken from it.")
    sinks: tuple[SinkConfig, ...] = Field(
        (), description="Where changes go; without an iceberg entry the lake's defaults apply."
    )
    stop_on_incompatible_schema: bool | None = Field(
        None,
        description="A schema change that holds one table holds every table of the pipeline;"
        " without the key, platform.yaml's counts.",
    )
    schedules: Schedules = Field(Schedules(), description="When the generated Dags run.")
    verify: VerifyConfig = Field(VerifyConfig(), description="How much verification compares.")
    tags: tuple[str, ...] = Field((), description="Extra tags of the generated Dags.")
    owner: str = Field("tidegate", description="Owner of the generated Dags.")

    @model_validator(mode="after")
    def _fits_together(self) -> PipelineConfig:
        issues = [*self._sink_issues(), *self._lake_issues()]
        if issues:
            raise WrongTogether(issues)
        return self

    def _sink_issues(self) -> Iterator[Issue]:
        seen: set[str] = set()
        lake: str | None = None
        for index, sink in enumerate(self.sinks):
            if sink.sink_id in seen:
                yield Issue(("sinks", index, "sink_id"), f"{sink.sink_id} is used more than once")
            seen.add(sink.sink_id)
            if sink.sink_type is SinkType.ICEBERG and sink.enabled:
                if lake is not None:
                    message = f"one iceberg sink may be enabled, and {lake} is"
                    yield Issue(("sinks", index, "enabled"), message)
                lake = lake or sink.sink_id

    def _lake_issues(self) -> Iterator[Issue]:
        place = self._lake_place
        for unknown in sorted(set(self.lake.tables) - set(self.source.tables)):
            yield Issue((*place, "tables", unknown), "source.tables does not list this table")
        targets: dict[str, str] = {}
        for table in self.source.table_ids:
            name = self.target(table).name.lower()  # catalogs differ on case: never rely on it
            if name in targets:
                message = (
                    f"{targets[name]} and {table} would both be written to {self.namespace}.{name};"
                    " use {schema} in table_name, or give one a table_name of its own"
                )
                yield Issue((*place, "table_name"), message)
            targets.setdefault(name, str(table))

    @property
    def _lake_place(self) -> tuple[str | int, ...]:
        for index, sink in enumerate(self.sinks):
            if sink.sink_type is SinkType.ICEBERG and sink.enabled:
                return ("sinks", index, "iceberg")
        return ("sinks",)

    @property
    def lake(self) -> IcebergSink:
        """The enabled iceberg sink, or the defaults."""
        for sink in self.sinks:
            if sink.sink_type is SinkType.ICEBERG and sink.enabled and sink.iceberg:
                return sink.iceberg
        return IcebergSink()

    @property
    def lake_id(self) -> str:
        """The enabled iceberg sink's name, or what the defaults go by."""
        enabled = (s for s in self.sinks if s.sink_type is SinkType.ICEBERG and s.enabled)
        return next((sink.sink_id for sink in enabled), LAKE_ID)

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
            policies=own.policies or lake.policies,
            schema_changes=own.schema_changes or lake.schema_changes,
            compatibility=own.compatibility or lake.compatibility,
            properties=lake.properties,
            auto_create=lake.auto_create_table,
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
    policies: Policies
    schema_changes: SchemaChanges
    compatibility: Compatibility
    properties: dict[str, str]
    auto_create: bool
    options: TableOptions
    maintenance: MaintenanceConfig

    @property
    def table(self) -> TableId:
        return TableId.parse(self.source)

    @property
    def forgets(self) -> bool:
        """Whether the table keeps the present rows only: nothing older, nothing deleted."""
        return self.write_mode is WriteMode.UPSERT and not self.soft_delete

    @property
    def identifier(self) -> tuple[str, str]:
        """PyIceberg identifier."""
        return (self.namespace, self.name)
