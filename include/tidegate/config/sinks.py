"""``sinks:``: where changes go. ``iceberg`` describes the lake tables; others are delivery."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator

from tidegate.config.base import Issue, Section, WrongTogether
from tidegate.config.source import TableName


class SinkType(StrEnum):
    WEBHOOK = "webhook"
    POSTGRES = "postgres"
    ICEBERG = "iceberg"


class WriteMode(StrEnum):
    UPSERT = "upsert"  # the table mirrors the source
    APPEND = "append"  # every change is a row, with _cdc_ columns
    HISTORY = "history"  # every version of a row, with its validity (SCD2)


class WebhookSink(Section):
    url: str
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = Field({}, description="Headers of every request.")
    timeout_seconds: float = Field(30.0, gt=0)


class PostgresSink(Section):
    host: str = "localhost"
    port: int = Field(5432, ge=1, le=65535)
    database: str
    username: str = "cdc_user"
    password: SecretStr = SecretStr("cdc_password")
    target_table: str
    batch_size: int = Field(100, ge=1)
    upsert: bool = False


class MaintenanceConfig(Section):
    """When upkeep of a lake table is due."""

    enabled: bool = Field(
        True, description="Whether the maintenance Dag and `tidegate maintain` touch the table."
    )
    expire_snapshots_interval_seconds: float = Field(
        3600.0, ge=0, description="Least time between two expiries of one table."
    )
    expire_snapshots_older_than_seconds: float = Field(
        86400.0, ge=0, description="Snapshots older than this expire (the last one never does)."
    )
    compaction_interval_seconds: float = Field(
        7200.0, ge=0, description="Least time between two compactions of one table."
    )
    compaction_file_threshold: int = Field(
        10, ge=2, description="Small data files in one partition that make compaction due."
    )
    compaction_max_rows_per_batch: int = Field(
        500_000, ge=1, description="Rows rewritten in one commit of a compaction, at most about."
    )
    delete_file_threshold: int = Field(
        10, ge=1, description="Data files with deletes that make compaction due."
    )
    manifest_threshold: int = Field(
        30, ge=2, description="Manifests that make a manifest rewrite due."
    )
    orphan_files_interval_seconds: float = Field(
        86400.0, ge=0, description="Least time between two orphan-file removals of one table."
    )
    orphan_files_older_than_seconds: float = Field(
        3 * 86400.0, ge=0, description="Files no snapshot names and older than this are removed."
    )
    retain_last: int = Field(5, ge=1, description="Snapshots always kept, whatever their age.")


class Expectation(Section):
    """One Great Expectations check of the sweep's audit."""

    type: str = Field(description="Expectation type, e.g. expect_column_values_to_not_be_null.")
    kwargs: dict[str, Any] = Field({}, description="Its arguments, e.g. {column: email}.")


class TableOptions(Section):
    """What one table overrides. Unset keys take the sink's value."""

    table_name: str | None = Field(None, description="Lake table name of this table.")
    write_mode: WriteMode | None = None
    soft_delete: bool | None = None
    partition_by: tuple[str, ...] | None = Field(
        None, description="Iceberg partition terms: day(created_at), bucket(16, id), country."
    )
    sort_by: tuple[str, ...] | None = Field(
        None, description="Sort order; by default the key, so that merges prune files."
    )
    expectations: tuple[Expectation, ...] = ()
    maintenance: MaintenanceConfig | None = None


class IcebergSink(Section):
    """How the lake tables look."""

    catalog_uri: str | None = Field(
        None, description="Overrides the platform's catalog (sqlite:///…); rarely needed."
    )
    warehouse: str | None = Field(None, description="Overrides the platform's warehouse.")
    namespace: str | None = Field(
        None, description="Iceberg namespace of the lake tables; by default the pipeline_id."
    )
    table_name: str = Field("{table}", description="Name template: {schema}, {table}.")
    write_mode: WriteMode = WriteMode.UPSERT
    soft_delete: bool = Field(False, description="Keep deleted rows with _cdc_deleted = true.")
    batch_size: int = Field(
        500, ge=1, description="Accepted for compatibility; batches end at transactions."
    )
    auto_create_table: bool = True
    format_version: Literal[2, 3] = Field(
        3, description="3: deletion vectors; 2 for readers that do not know them."
    )
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: dict[str, str] = Field({}, description="Iceberg table properties to set.")
    maintenance: MaintenanceConfig = MaintenanceConfig()
    tables: dict[TableName, TableOptions] = Field({}, description="Overrides by source table.")


class SinkConfig(Section):
    """One entry of ``sinks``: ``sink_type`` names the section that must be present."""

    sink_id: str = Field(min_length=1)
    sink_type: SinkType
    enabled: bool = True
    webhook: WebhookSink | None = None
    postgres: PostgresSink | None = None
    iceberg: IcebergSink | None = None

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
        if issues:
            raise WrongTogether(issues)
        return self
