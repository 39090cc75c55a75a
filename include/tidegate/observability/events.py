"""Log events that the platform specification names, and the fields each of them has.

``docs/operations/monitoring.md`` lists them; a test holds both together, and each event to its
fields. The specification's ``pipeline.partitions_assigned`` and ``…_revoked`` are a Kafka consumer
group's: with ``transport_mode: embedded`` there is none, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SCHEMA_VERSION_CHANGED: Final = "schema.version_changed"
SCHEMA_INCOMPATIBLE: Final = "schema.incompatible_change_detected"
CONSUMER_LAG: Final = "consumer.lag"
SINK_WRITE_ERROR: Final = "pipeline.sink_write_error"

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    SCHEMA_VERSION_CHANGED: (
        "pipeline",
        "table",
        "subject",
        "previous_version",
        "new_version",
        "schema_id",
        "compatible",
        "position",
    ),
    SCHEMA_INCOMPATIBLE: ("pipeline", "table", "run", "code", "hint"),
    CONSUMER_LAG: ("pipeline", "total_lag", "partitions"),
    SINK_WRITE_ERROR: ("pipeline", "table", "run", "sink_id", "code", "rows", "hint"),
}
"""Always there; ``reason`` besides, where there is more to say."""
PARTITION_FIELDS: Final = ("topic", "partition", "lag", "offset", "table", "position", "seconds")
"""Of each entry of ``consumer.lag``'s ``partitions``."""
