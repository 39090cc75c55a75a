"""What the change log looks like as an Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from tidegate.envelope.position import Position
from tidegate.lake.ledger import CONTROL_PROPERTIES
from tidegate.lake.tables import COMPACTION_RETRIES
from tidegate.names import ANCHOR_PROPERTY, CAPTURED_THROUGH, EPOCH_PROPERTY

TABLE_NAME: Final = "change_log"
BUCKETS: Final = 8
"""Source tables are spread over this many buckets, so that one table's reader skips most files."""


def _strings(element_id: int) -> ListType:
    return ListType(element_id=element_id, element_type=StringType(), element_required=False)


LOG_SCHEMA: Final = Schema(
    NestedField(1, "epoch", StringType(), required=False),
    NestedField(2, "shard", StringType(), required=False),
    NestedField(3, "position", StringType(), required=False),
    NestedField(4, "tx_id", LongType(), required=False),
    NestedField(5, "commit_ts", TimestamptzType(), required=False),
    NestedField(6, "captured_at", TimestamptzType(), required=False),
    NestedField(7, "table", StringType(), required=False),
    NestedField(8, "op", StringType(), required=False),
    NestedField(9, "schema_id", StringType(), required=False),
    NestedField(10, "key", _strings(15), required=False),
    NestedField(11, "before", _strings(16), required=False),
    NestedField(12, "after", _strings(17), required=False),
    NestedField(
        13,
        "unchanged",
        ListType(element_id=18, element_type=IntegerType(), element_required=False),
        required=False,
    ),
    NestedField(14, "event_id", StringType(), required=False),
)
LOG_SPEC: Final = PartitionSpec(
    PartitionField(6, 1000, DayTransform(), "captured_day"),
    PartitionField(7, 1001, BucketTransform(BUCKETS), "table_bucket"),
)
LOG_ORDER: Final = SortOrder(
    SortField(source_id=7, transform=IdentityTransform()),
    SortField(source_id=3, transform=IdentityTransform()),
)
_BOUNDED: Final = ("epoch", "position", "table", "commit_ts", "captured_at")
LOG_PROPERTIES: Final[dict[str, str]] = {
    **CONTROL_PROPERTIES,
    # Capture may land between them too. Our own appends never try again, whatever this says
    # (lake/commits.py, I4).
    **COMPACTION_RETRIES,
    "write.parquet.compression-codec": "zstd",
    # Bounds serve pruning and retention; bounds of row values would put data into metadata (I9).
    "write.metadata.metrics.default": "none",
    # Positions are longer than the default's 16 characters; cut-off bounds do not compare.
    **{f"write.metadata.metrics.column.{name}": "full" for name in _BOUNDED},
}


@dataclass(frozen=True, slots=True)
class LogHead:
    """The log at one moment: pin reads to ``snapshot_id``, it holds all up to the position."""

    snapshot_id: int
    captured_through: Position


def reached(through: Position) -> dict[str, str]:
    """How a snapshot's summary says what was captured."""
    facts = {CAPTURED_THROUGH: str(through), EPOCH_PROPERTY: through.epoch}
    return facts if through.anchor is None else {**facts, ANCHOR_PROPERTY: through.anchor}


def captured(summary: Mapping[str, str]) -> Position | None:
    """What a snapshot says was captured; None if it says nothing."""
    text = summary.get(CAPTURED_THROUGH)
    if text is None:
        return None
    return replace(Position.parse(text), anchor=summary.get(ANCHOR_PROPERTY))
