"""Keys that a file may have and nothing reads: of the platform specification, for other transports.

They are accepted, so that a file written for the specification loads unchanged, and `validate` says
so, for a key that is silently off is worse than one that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tidegate.config.base import Section
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, TransportMode

REGISTRY_URL: Final = "kafka.schema_registry_url"
BATCH_SIZE: Final = "batch_size"
UNUSED: Final[Mapping[TransportMode, frozenset[str]]] = {
    TransportMode.EMBEDDED: frozenset(
        {
            # There are no brokers: the change log is an Iceberg table.
            "kafka.bootstrap_servers",
            "kafka.group_id",
            "kafka.auto_offset_reset",
            "kafka.enable_idempotence",
            "kafka.acks",
            "kafka.topic_num_partitions",
            "kafka.topic_replication_factor",
            # The source's log is read directly, by no Kafka Connect.
            "connector.connect_url",
            "connector.timeout_seconds",
            "connector.retry_max_attempts",
            "connector.retry_wait_seconds",
            # Memory is bounded by capture.max_batch_bytes; schemas come with the log itself.
            "max_buffered_messages",
            "schema_monitor_interval_seconds",
            # Letters are a table; what a value's type refuses, no second attempt takes.
            "dlq.topic_suffix",
            "dlq.max_retries",
        }
    ),
    TransportMode.KAFKA: frozenset(),  # refused as a whole until it is built
}


def without_effect(pipeline: PipelineConfig, platform: PlatformConfig) -> tuple[str, ...]:
    """The keys that were written and do nothing, in the order of the files."""
    unused = UNUSED[platform.transport_mode]
    if not platform.schema_registry.enabled or platform.schema_registry.url is not None:
        unused |= {REGISTRY_URL}
    found = [key for key in written(platform) if key in unused]
    for sink in pipeline.sinks:
        # Batches end where transactions do (I5).
        if sink.iceberg is not None and BATCH_SIZE in sink.iceberg.model_fields_set:
            found.append(f"sinks.{sink.sink_id}.iceberg.{BATCH_SIZE}")
    return tuple(found)


def written(section: Section, prefix: str = "") -> Iterator[str]:
    """The keys a file really has, in the order of the models."""
    for name in type(section).model_fields:
        if name not in section.model_fields_set:
            continue
        value, path = getattr(section, name), f"{prefix}{name}"
        if isinstance(value, Section):
            yield from written(value, f"{path}.")
        else:
            yield path
