"""``platform.yaml``: the infrastructure pipelines run on. Optional; every key has a default."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from tidegate.config.base import Section


class TransportMode(StrEnum):
    EMBEDDED = "embedded"  # the change log is an Iceberg table
    KAFKA = "kafka"


class CatalogType(StrEnum):
    SQLITE = "sqlite"
    JDBC = "jdbc"
    REST = "rest"
    GLUE = "glue"
    HIVE = "hive"


class KafkaConfig(Section):
    bootstrap_servers: str = "localhost:9092"
    schema_registry_url: str = "http://localhost:8081"
    group_id: str = "cdc-platform"
    auto_offset_reset: Literal["earliest", "latest"] = "earliest"
    enable_idempotence: bool = True
    acks: Literal["all", "0", "1"] = "all"
    topic_num_partitions: int = Field(1, ge=1)
    topic_replication_factor: int = Field(1, ge=1)


class ConnectorConfig(Section):
    connect_url: str = "http://localhost:8083"
    timeout_seconds: float = Field(30.0, gt=0)
    retry_max_attempts: int = Field(5, ge=1)
    retry_wait_seconds: float = Field(2.0, ge=0)


class DlqConfig(Section):
    enabled: bool = True
    topic_suffix: str = "dlq"
    max_retries: int = Field(3, ge=0)
    include_headers: bool = True


class RetryConfig(Section):
    """Back-off of everything that retries."""

    max_attempts: int = Field(5, ge=1)
    initial_wait_seconds: float = Field(1.0, ge=0)
    max_wait_seconds: float = Field(60.0, ge=0)
    multiplier: float = Field(2.0, ge=1)
    jitter: bool = True


class CatalogConfig(Section):
    """The Iceberg catalog, shared by Spark and PyIceberg."""

    type: CatalogType = CatalogType.SQLITE
    uri: str | None = Field(
        None, description="sqlite: a file path (default <home>/catalog.db); others: their URI."
    )
    properties: dict[str, str] = Field({}, description="Further catalog properties, both engines.")


class LakeConfig(Section):
    home: str = Field(
        ".tidegate", description="Local state directory; the default of what follows."
    )
    warehouse: str | None = Field(
        None, description="file:///… or s3://…; by default <home>/warehouse."
    )
    catalog: CatalogConfig = CatalogConfig()


class SparkConfig(Section):
    master: str = Field("local[*]", description="local[*], spark://…, yarn, k8s://…")
    deploy_mode: Literal["client", "cluster"] = "client"
    driver_memory: str = "2g"
    conf: dict[str, str] = Field({}, description="Further Spark configuration.")
    extra_packages: tuple[str, ...] = Field((), description="Further Maven coordinates.")
    table_parallelism: int = Field(4, ge=1, description="Tables applied side by side.")


class CaptureConfig(Section):
    max_batch_bytes: int = Field(
        64 * 1024 * 1024, ge=64 * 1024, description="Raw log bytes decoded at once (bounds memory)."
    )
    commit_bytes: int = Field(
        256 * 1024 * 1024, ge=64 * 1024, description="Commit to the change log after this much."
    )
    commit_seconds: float = Field(
        30.0, gt=0, description="Commit at the next transaction boundary after this long."
    )
    idle_commit_seconds: float = Field(
        240.0, ge=0, description="On a quiet source, note progress (and release WAL) this often."
    )


class GateConfig(Section):
    lease_seconds: float = Field(
        60.0, gt=0, description="A writer silent for this long may be taken over."
    )
    wait_seconds: float = Field(
        900.0, ge=0, description="How long a run waits for another writer of its table."
    )


class SweepConfig(Section):
    chunk_rows: int = Field(250_000, ge=1000, description="About as many rows per chunk.")
    parallelism: int = Field(4, ge=1, description="Source connections reading side by side.")
    fetch_size: int = Field(10_000, ge=1)
    lock_timeout_seconds: float = Field(
        30.0, gt=0, description="Give up if the source's tables stay locked this long (I11)."
    )
    cut_timeout_seconds: float = Field(
        120.0, gt=0, description="Give up if open transactions hold the cut back this long (I11)."
    )
    max_snapshot_seconds: float = Field(
        6 * 3600.0, gt=0, description="End a source snapshot (and its xmin) after this long (I11)."
    )
    branch_max_age_seconds: float = Field(
        7 * 86400.0, gt=0, description="A failed sweep's branch is kept this long."
    )


class RetentionConfig(Section):
    change_log_seconds: float = Field(
        7 * 86400.0,
        ge=0,
        description="Change-log rows nobody needs any more are kept this long for inspection.",
    )


class PlatformConfig(Section):
    """Infrastructure. Where a key exists in the platform specification, it keeps its name."""

    version: Literal[1] = 1
    transport_mode: TransportMode = TransportMode.EMBEDDED
    kafka: KafkaConfig = KafkaConfig()
    connector: ConnectorConfig = ConnectorConfig()
    dlq: DlqConfig = DlqConfig()
    retry: RetryConfig = RetryConfig()
    max_buffered_messages: int = Field(1000, ge=1)
    schema_monitor_interval_seconds: float = Field(30.0, gt=0)
    lag_monitor_interval_seconds: float = Field(15.0, gt=0)
    stop_on_incompatible_schema: bool = False
    health_port: int = Field(8080, ge=1, le=65535)
    health_enabled: bool = True
    lake: LakeConfig = LakeConfig()
    spark: SparkConfig = SparkConfig()
    capture: CaptureConfig = CaptureConfig()
    gate: GateConfig = GateConfig()
    sweep: SweepConfig = SweepConfig()
    retention: RetentionConfig = RetentionConfig()
