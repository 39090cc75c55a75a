"""``sinks:``: where changes go. ``iceberg`` describes the lake tables; others are delivery."""

from __future__ import annotations

import string
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from tidegate.config.base import Issue, Section, WrongTogether
from tidegate.config.schema_changes import Compatibility, SchemaChanges
from tidegate.config.source import TableName

DAY_SECONDS: Final = 86400.0
EXPIRE_INTERVAL_SECONDS: Final = 3600.0
"""The platform specification's value, as for the four constants that follow."""
EXPIRE_OLDER_THAN_SECONDS: Final = DAY_SECONDS
COMPACTION_INTERVAL_SECONDS: Final = 7200.0
COMPACTION_FILE_THRESHOLD: Final = 10
COMPACTION_MAX_ROWS: Final = 500_000
DELETE_FILE_THRESHOLD: Final = 10
"""Readers open one more file for each: the same limit as for small data files."""
MANIFEST_THRESHOLD: Final = 30
"""Planning reads every manifest; up to about this many it is not felt."""
ORPHAN_INTERVAL_SECONDS: Final = DAY_SECONDS
"""Listing a warehouse is slow and costs requests on object stores."""
ORPHAN_OLDER_THAN_SECONDS: Final = 3 * DAY_SECONDS
"""Iceberg's own default: a running writer's files are not yet named by any snapshot."""
RETAIN_LAST: Final = 5
"""A quiet table keeps something to roll back to."""


def _name_template(value: str) -> str:
    fields = {field for _, field, _, _ in string.Formatter().parse(value) if field is not None}
    unknown = sorted(fields - {"schema", "table"})
    if unknown:
        raise ValueError(f"only {{schema}} and {{table}} are replaced, not {', '.join(unknown)}")
    return value


NameTemplate = Annotated[str, AfterValidator(_name_template)]


class SinkType(StrEnum):
    WEBHOOK = "webhook"
    POSTGRES = "postgres"
    ICEBERG = "iceberg"


class WriteMode(StrEnum):
    UPSERT = "upsert"  # the table mirrors the source
    APPEND = "append"  # every change is a row, with _cdc_ columns
    HISTORY = "history"  # every version of a row, with its validity (SCD2)


class WebhookSink(Section):
    """Changes by HTTP. Not built yet: validated, and refused by `deploy` while enabled."""

    url: str = Field(description="Where each change is sent.")
    method: Literal["POST", "PUT", "PATCH"] = Field("POST", description="HTTP method.")
    headers: dict[str, str] = Field({}, description="Headers of every request.")
    timeout_seconds: float = Field(30.0, gt=0, description="Give up a request after this.")


class PostgresSink(Section):
    """Changes into a PostgreSQL table. Not built yet: validated, refused by `deploy` while
    enabled."""

    host: str = Field("localhost", description="Database host.")
    port: int = Field(5432, ge=1, le=65535, description="Database port.")
    database: str = Field(description="Database name.")
    username: str = Field("cdc_user", description="Database user.")
    password: SecretStr | None = Field(
        None,
        description="Its password; write ${VAR}, never the value. Required while the sink is"
        " enabled.",
    )
    target_table: str = Field(description="Table the changes go to.")
    batch_size: int = Field(100, ge=1, description="Changes per insert.")
    upsert: bool = Field(False, description="Insert idempotently (needs a unique constraint).")


class MaintenanceConfig(Section):
    """When upkeep of a lake table is due."""

    enabled: bool = Field(
        True, description="Whether the maintenance Dag and `tidegate maintain` touch the table."
    )
    expire_snapshots_interval_seconds: float = Field(
        EXPIRE_INTERVAL_SECONDS, ge=0, description="Least time between two expiries of one table."
    )
    expire_snapshots_older_than_seconds: float = Field(
        EXPIRE_OLDER_THAN_SECONDS,
        ge=0,
        description="Snapshots older than this expire (the last one never does).",
    )
    compaction_interval_seconds: float = Field(
        COMPACTION_INTERVAL_SECONDS,
        ge=0,
        description="Least time between two compactions of one table.",
    )
    compaction_file_threshold: int = Field(
        COMPACTION_FILE_THRESHOLD,
        ge=2,
        description="Small data files in one partition that make compaction due.",
    )
    compaction_max_rows_per_batch: int = Field(
        COMPACTION_MAX_ROWS,
        ge=1,
        description="Rows rewritten in one commit of a compaction, at most about.",
    )
    delete_file_threshold: int = Field(
        DELETE_FILE_THRESHOLD, ge=1, description="Data files with deletes that make compaction due."
    )
    manifest_threshold: int = Field(
        MANIFEST_THRESHOLD, ge=2, description="Manifests that make a manifest rewrite due."
    )
    orphan_files_interval_seconds: float = Field(
        ORPHAN_INTERVAL_SECONDS,
        ge=0,
        description="Least time between two orphan-file removals of one table.",
    )
    orphan_files_older_than_seconds: float = Field(
        ORPHAN_OLDER_THAN_SECONDS,
        ge=0,
        description="Files no snapshot names and older than this are removed.",
    )
    retain_last: int = Field(
        RETAIN_LAST, ge=1, description="Snapshots always kept, whatever their age."
    )


class Expectation(Section):
    """One Great Expectations check of the sweep's audit."""

    type: str = Field(description="Expectation type, e.g. expect_column_values_to_not_be_null.")
    kwargs: dict[str, Any] = Field({}, description="Its arguments, e.g. {column: email}.")


class Policies(Section):
    """What becomes of values that no lake type holds. Every use is counted."""

    datetime: Literal["clamp", "null", "string", "reject"] = Field(
        "clamp",
        description="±infinity, BC and years after 9999 of dates and timestamps. clamp: the first"
        " or last moment the lake holds; null; string: columns of these types become text; reject:"
        " the row cannot be applied, and its table is held.",
    )
    numeric: Literal["null", "string", "reject"] = Field(
        "null", description="NaN of numerics that are decimals in the lake; as above."
    )


class ColumnOptions(Section):
    """What one column overrides."""

    type: str | None = Field(
        None,
        description="Lake type: string (any column, the source's own text), decimal(p,s), long,"
        " list<…>, variant (json, jsonb); see the types reference for what can become what.",
    )
    policy: Literal["clamp", "null", "string", "reject"] | None = Field(
        None, description="For values no lake type holds; by default the table's policies."
    )


class ReloadOptions(Section):
    """Which rows belong to a day, for `<pipeline>__reload` and `tidegate reload`."""

    time_column: str = Field(
        description="A date or timestamp column; rows are read again by the interval it lies in."
    )


class TableOptions(Section):
    """What one table overrides. Unset keys take the sink's value."""

    table_name: NameTemplate | None = Field(None, description="Lake table name of this table.")
    write_mode: WriteMode | None = Field(None, description="upsert, append or history.")
    soft_delete: bool | None = Field(
        None, description="Keep deleted rows with _cdc_deleted = true (write_mode upsert)."
    )
    partition_by: tuple[str, ...] | None = Field(
        None, description="Iceberg partition terms: day(created_at), bucket(16, id), country."
    )
    sort_by: tuple[str, ...] | None = Field(
        None, description="Sort order; by default the key, so that merges prune files."
    )
    policies: Policies | None = Field(
        None, description="For values no lake type holds; replaces the sink's section as a whole."
    )
    columns: dict[str, ColumnOptions] = Field({}, description="Overrides by source column.")
    schema_changes: SchemaChanges | None = Field(
        None, description="By kind of change; replaces the sink's section as a whole."
    )
    compatibility: Compatibility | None = Field(
        None, description="What a new schema must be to those before it."
    )
    expectations: tuple[Expectation, ...] = Field(
        (), description="Great Expectations checks a sweep must pass before it is published."
    )
    maintenance: MaintenanceConfig | None = Field(
        None, description="Upkeep of this table; replaces the sink's section as a whole."
    )
    reload: ReloadOptions | None = Field(
        None, description="Makes the table part of the pipeline's reload Dag."
    )


class IcebergSink(Section):
    """How the lake tables look."""

    catalog_uri: str | None = Field(
        None, description="Overrides the platform's catalog (sqlite:///…); rarely needed."
    )
    warehouse: str | None = Field(None, description="Overrides the platform's warehouse.")
    namespace: str | None = Field(
        None, description="Iceberg namespace of the lake tables; by default the pipeline_id."
    )
    table_name: NameTemplate = Field("{table}", description="Name template: {schema}, {table}.")
    write_mode: WriteMode = Field(
        WriteMode.UPSERT,
        description="upsert: mirror the source; append: every change as a row; history: every"
        " version of a row with its validity.",
    )
    soft_delete: bool = Field(False, description="Keep deleted rows with _cdc_deleted = true.")
    batch_size: int = Field(
        500, ge=1, description="Accepted, without effect: batches end at transactions."
    )
    auto_create_table: bool = Field(
        True, description="Create lake tables that do not exist; false: they must exist."
    )
    format_version: Literal[2, 3] = Field(
        3, description="3: deletion vectors; 2 for readers that do not know them."
    )
    partition_by: tuple[str, ...] = Field(
        (), description="Partition terms of every table: day(created_at), bucket(16, id)."
    )
    sort_by: tuple[str, ...] = Field((), description="Sort order; by default the key.")
    policies: Policies = Field(
        Policies(), description="What becomes of values that no lake type holds."
    )
    schema_changes: SchemaChanges = Field(
        SchemaChanges(), description="What a change of the source's columns leads to, by its kind."
    )
    compatibility: Compatibility = Field(
        Compatibility.NONE,
        description="What a new schema must be to the one before it (with _TRANSITIVE to all),"
        " besides schema_changes: NONE, BACKWARD, FORWARD or FULL. What is not holds the table.",
    )
    properties: dict[str, str] = Field({}, description="Iceberg table properties to set.")
    maintenance: MaintenanceConfig = Field(MaintenanceConfig(), description="When upkeep is due.")
    tables: dict[TableName, TableOptions] = Field({}, description="Overrides by source table.")


class SinkConfig(Section):
    """One entry of ``sinks``: ``sink_type`` names the section that must be present."""

    sink_id: str = Field(min_length=1, description="Names the sink within the pipeline.")
    sink_type: SinkType = Field(description="Which of the sections below it has.")
    enabled: bool = Field(True, description="A disabled sink is checked and not used.")
    webhook: WebhookSink | None = Field(None, description="Changes by HTTP.")
    postgres: PostgresSink | None = Field(None, description="Changes into a PostgreSQL table.")
    iceberg: IcebergSink | None = Field(None, description="How the lake tables look.")

    @model_validator(mode="after")
    def _own_section_only(self) -> SinkConfig:
        issues: list[Issue] = []
        for kind in SinkType:
            present = getattr(self, kind.value) is not None
            if present and kind is not self.sink_type:
                message = f"sink_type is {self.sink_type}, so the key {kind} is not allowed"
                issues.append(Issue((kind.value,), message))
            if not present and kind is self.sink_type and kind is not SinkType.ICEBERG:
                message = f"sink_type is {kind}, so the key {kind} is required"
                issues.append(Issue((kind.value,), message))
        if self.enabled and self.postgres is not None and self.postgres.password is None:
            told = "a required key is missing, while the sink is enabled"
            issues.append(Issue((SinkType.POSTGRES.value, "password"), told))
        if issues:
            raise WrongTogether(issues)
        return self
