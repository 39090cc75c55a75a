"""``platform.yaml``: the infrastructure pipelines run on. Optional; every key has a default."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from tidegate.config.base import Section
from tidegate.config.guard import GuardConfig
from tidegate.config.registry import Address, SchemaRegistryConfig

MIB: Final = 1024 * 1024
DAY_SECONDS: Final = 86400.0

LOOPBACK: Final = "127.0.0.1"
"""Nobody but this machine is answered until somebody says otherwise: answers need no token."""
DRIVER_MEMORY: Final = "2g"
"""Room for merges of a few million changes beside a local Spark's own needs."""
TABLE_PARALLELISM: Final = 4
"""A small merge waits on planning and commits, not on cores: four overlap well on two."""
MAX_BATCH_BYTES: Final = 64 * MIB
"""Decoding in larger pieces is no faster, and capture's memory follows the largest piece."""
MAX_VALUE_BYTES: Final = 64 * MIB
"""Spark holds a row several times over while it merges it; a value of this size still goes through
the default memory. PostgreSQL itself allows 1 GB."""
COMMIT_BYTES: Final = 256 * MIB
"""Files of a good size; a crash re-reads at most this much."""
COMMIT_SECONDS: Final = 30.0
"""A steady trickle is durable, and its WAL released, within half a minute."""
IDLE_COMMIT_SECONDS: Final = 240.0
"""Quiet databases keep releasing WAL at a cost of 15 empty commits an hour."""
LEASE_SECONDS: Final = 60.0
"""Several missed renewals; a paused JVM or a slow catalog is not taken for dead."""
APPROVAL_WAIT_SECONDS: Final = 20 * 3600.0
"""Someone looks within a working day; before the next daily run asks again."""
GATE_WAIT_SECONDS: Final = 900.0
"""Longer than a usual apply or compaction, shorter than anyone's patience with a task."""
CHUNK_ROWS: Final = 250_000
"""A killed sweep repeats one chunk: seconds of work, and few enough commits on large tables."""
SWEEP_PARALLELISM: Final = 4
"""Connections a sweep may hold on the source (I11)."""
FETCH_SIZE: Final = 10_000
"""Rows per round trip; must be above 0, or the driver holds the whole chunk in memory."""
MAX_DEAD_LETTERS: Final = 1000
"""What a person can look at; more have one cause, and holding the table says so sooner."""
MAX_DEAD_LETTER_RATIO: Final = 0.1
"""One change in ten is no longer a bad row but a wrong type or policy."""
LOCK_TIMEOUT_SECONDS: Final = 30.0
"""A queued lock stands in the way of every later one: do not queue long (I11)."""
CUT_TIMEOUT_SECONDS: Final = 120.0
"""The cut waits for transactions that are open on the source; usual ones end sooner."""
MAX_SNAPSHOT_SECONDS: Final = 6 * 3600.0
"""A snapshot holds the source's vacuum back; after this the sweep goes on at a new cut (I11)."""
BRANCH_MAX_AGE_SECONDS: Final = 7 * DAY_SECONDS
"""A working week to look at a failed sweep."""
CHANGE_LOG_SECONDS: Final = 7 * DAY_SECONDS
"""A working week to look at what happened; what is still needed is kept longer by itself."""


def _acks(value: object) -> object:
    """YAML reads ``acks: 1`` as a number; Kafka's own -1 is ``all``."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return value
    return "all" if str(value) == "-1" else str(value)


Acks = Annotated[Literal["all", "0", "1"], BeforeValidator(_acks)]


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
    """Kafka and its schema registry; used with `transport_mode: kafka`, but for the registry's
    address, which `schema_registry` takes too."""

    bootstrap_servers: str = Field("localhost:9092", description="Brokers, host:port,….")
    schema_registry_url: Address = Field("http://localhost:8081", description="Schema registry.")
    group_id: str = Field("cdc-platform", description="Consumer group.")
    auto_offset_reset: Literal["earliest", "latest"] = Field(
        "earliest", description="Where a group without an offset begins."
    )
    enable_idempotence: bool = Field(True, description="Idempotent producer for dead letters.")
    acks: Acks = Field("all", description="Acknowledgements a write waits for.")
    topic_num_partitions: int = Field(1, ge=1, description="Partitions of topics made by deploy.")
    topic_replication_factor: int = Field(1, ge=1, description="Replicas of topics made by deploy.")


class ConnectorConfig(Section):
    """Kafka Connect; used with `transport_mode: kafka` only."""

    connect_url: str = Field("http://localhost:8083", description="Kafka Connect's REST address.")
    timeout_seconds: float = Field(30.0, gt=0, description="Give up a request after this.")
    retry_max_attempts: int = Field(5, ge=1, description="Attempts to deploy a connector.")
    retry_wait_seconds: float = Field(2.0, ge=0, description="Wait between those attempts.")


class DlqConfig(Section):
    """Dead letters: changes that could not be applied or delivered, kept with their reason."""

    enabled: bool = Field(
        True,
        description="Set aside what cannot be applied or delivered and go on; false: one such"
        " change holds its table.",
    )
    max_dead_letters: int = Field(
        MAX_DEAD_LETTERS,
        ge=0,
        description="Letters of one table, waiting ones included, above which it is held.",
    )
    max_dead_letter_ratio: float = Field(
        MAX_DEAD_LETTER_RATIO,
        gt=0,
        le=1,
        description="Share of a batch's changes that may fail before the table is held; small"
        " batches (under 100 changes) are not judged by it.",
    )
    topic_suffix: str = Field("dlq", description="Suffix of dead-letter topics (kafka).")
    max_retries: int = Field(3, ge=0, description="Attempts before a change becomes a letter.")
    include_headers: bool = Field(True, description="Diagnostic headers on letters (kafka).")


class RetryConfig(Section):
    """Back-off of everything that retries."""

    max_attempts: int = Field(5, ge=1, description="Attempts, the first included.")
    initial_wait_seconds: float = Field(1.0, ge=0, description="Wait before the second attempt.")
    max_wait_seconds: float = Field(60.0, ge=0, description="No wait is longer.")
    multiplier: float = Field(2.0, ge=1, description="Each wait is this much longer.")
    jitter: bool = Field(
        True, description="Vary waits, so that many clients do not return at once."
    )


class CatalogConfig(Section):
    """The Iceberg catalog, shared by Spark and PyIceberg."""

    type: CatalogType = Field(
        CatalogType.SQLITE, description="sqlite for one machine; the others for shared lakes."
    )
    uri: str | None = Field(
        None, description="sqlite: a file path (default <home>/catalog.db); others: their URI."
    )
    properties: dict[str, str] = Field({}, description="Further catalog properties, both engines.")


class LakeConfig(Section):
    """Where tables live. Relative paths are relative to this file, without one to the working
    directory."""

    home: str = Field(
        ".tidegate", description="Local state directory; the default of what follows."
    )
    warehouse: str | None = Field(
        None, description="file:///… or s3://…; by default <home>/warehouse."
    )
    catalog: CatalogConfig = Field(CatalogConfig(), description="The Iceberg catalog.")


class SparkConfig(Section):
    """How Spark is started."""

    master: str = Field("local[*]", description="local[*], spark://…, yarn, k8s://…")
    deploy_mode: Literal["client", "cluster"] = Field(
        "client", description="Where the driver runs, with spark-submit."
    )
    connection_id: str | None = Field(
        None, description="Airflow Spark connection that replaces master and deploy_mode there."
    )
    driver_memory: str = Field(DRIVER_MEMORY, description="Driver heap, as 2g or 512m.")
    conf: dict[str, str] = Field({}, description="Further Spark configuration.")
    extra_packages: tuple[str, ...] = Field((), description="Further Maven coordinates.")
    table_parallelism: int = Field(
        TABLE_PARALLELISM, ge=1, description="Tables applied or swept side by side."
    )


class CaptureConfig(Section):
    """How the source's log is read."""

    max_batch_bytes: int = Field(
        MAX_BATCH_BYTES, ge=64 * 1024, description="Raw log bytes decoded at once (bounds memory)."
    )
    max_value_bytes: int = Field(
        MAX_VALUE_BYTES,
        ge=64 * 1024,
        le=512 * MIB,
        description="A larger value (as text) is left out of the change log, and its change becomes"
        " a dead letter; so does its row in a sweep.",
    )
    commit_bytes: int = Field(
        COMMIT_BYTES, ge=64 * 1024, description="Commit to the change log after this much."
    )
    commit_seconds: float = Field(
        COMMIT_SECONDS, gt=0, description="Commit at the next transaction boundary after this long."
    )
    idle_commit_seconds: float = Field(
        IDLE_COMMIT_SECONDS,
        ge=0,
        description="On a quiet source, note progress (and release WAL) this often.",
    )


class GateConfig(Section):
    """Writers' leases on tables, and how long one waits for what a gate holds."""

    lease_seconds: float = Field(
        LEASE_SECONDS, gt=0, description="A writer silent for this long may be taken over."
    )
    wait_seconds: float = Field(
        GATE_WAIT_SECONDS, ge=0, description="How long a run waits for another writer of its table."
    )
    approval_wait_seconds: float = Field(
        APPROVAL_WAIT_SECONDS,
        gt=0,
        description="How long the schema Dag waits for someone to answer what holds a table, or to"
        " shortly before its next run if that is sooner.",
    )


class SweepConfig(Section):
    """How tables are re-read in full."""

    chunk_rows: int = Field(CHUNK_ROWS, ge=1000, description="About as many rows per chunk.")
    parallelism: int = Field(
        SWEEP_PARALLELISM, ge=1, description="Source connections reading side by side."
    )
    fetch_size: int = Field(FETCH_SIZE, ge=1, description="Rows per round trip to the source.")
    lock_timeout_seconds: float = Field(
        LOCK_TIMEOUT_SECONDS,
        gt=0,
        description="Give up if the source's tables stay locked this long (I11).",
    )
    cut_timeout_seconds: float = Field(
        CUT_TIMEOUT_SECONDS,
        gt=0,
        description="Wait this long for open transactions; then `upsert` tables are swept beside"
        " them, and whatever else they hold back gives up (I11).",
    )
    max_snapshot_seconds: float = Field(
        MAX_SNAPSHOT_SECONDS,
        gt=0,
        description="End a source snapshot (and its xmin) after this long (I11).",
    )
    branch_max_age_seconds: float = Field(
        BRANCH_MAX_AGE_SECONDS, gt=0, description="A failed sweep's branch is kept this long."
    )


class RetentionConfig(Section):
    """How long the change log keeps rows that nobody needs any more."""

    change_log_seconds: float = Field(
        CHANGE_LOG_SECONDS,
        ge=0,
        description="Change-log rows nobody needs any more are kept this long for inspection.",
    )


class PlatformConfig(Section):
    """Infrastructure. Where a key exists in the platform specification, it keeps its name."""

    version: Literal[1] = Field(1, description="Version of this file's format.")
    transport_mode: TransportMode = Field(
        TransportMode.EMBEDDED,
        description="embedded: the change log is an Iceberg table; kafka: Kafka topics.",
    )
    kafka: KafkaConfig = Field(KafkaConfig(), description="Kafka and its schema registry.")
    schema_registry: SchemaRegistryConfig = Field(
        SchemaRegistryConfig(), description="Where schemas are registered, if anywhere."
    )
    connector: ConnectorConfig = Field(ConnectorConfig(), description="Kafka Connect.")
    dlq: DlqConfig = Field(DlqConfig(), description="Dead letters.")
    retry: RetryConfig = Field(RetryConfig(), description="Back-off of everything that retries.")
    max_buffered_messages: int = Field(
        1000, ge=1, description="Messages queued per partition before reading pauses (kafka)."
    )
    schema_monitor_interval_seconds: float = Field(
        30.0, gt=0, description="How often schemas are compared with the registry (kafka)."
    )
    lag_monitor_interval_seconds: float = Field(
        15.0, gt=0, description="How often lag is measured while a pipeline runs."
    )
    stop_on_incompatible_schema: bool = Field(
        False,
        description="A schema change that holds one table holds every table of its pipeline;"
        " a pipeline.yaml that has the key overrides it.",
    )
    health_port: int = Field(
        8080,
        ge=0,
        le=65535,
        description="Where `run` and `capture --follow` serve /healthz and /readyz; 0: any free"
        " port.",
    )
    health_host: str = Field(
        LOOPBACK,
        description="Address that port is opened on; 0.0.0.0 where probes come from another"
        " machine or, in a container, from outside of it.",
    )
    health_enabled: bool = Field(True, description="Whether long-running processes serve health.")
    lake: LakeConfig = Field(LakeConfig(), description="Where tables live.")
    spark: SparkConfig = Field(SparkConfig(), description="How Spark is started.")
    capture: CaptureConfig = Field(CaptureConfig(), description="How the log is read.")
    gate: GateConfig = Field(GateConfig(), description="Writers' leases on tables.")
    sweep: SweepConfig = Field(SweepConfig(), description="How tables are re-read.")
    retention: RetentionConfig = Field(RetentionConfig(), description="The change log's memory.")
    guard: GuardConfig = Field(GuardConfig(), description="When what we hold is a worry.")

    @property
    def registry_url(self) -> str | None:
        """The schema registry's address; None where none is used."""
        if not self.schema_registry.enabled:
            return None
        return self.schema_registry.url or self.kafka.schema_registry_url
