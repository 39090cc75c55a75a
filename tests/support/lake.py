"""A real catalog and warehouse in a temporary directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import GateConfig, LakeConfig, PlatformConfig
from tidegate.config.source import SourceConfig
from tidegate.envelope.log_rows import ARROW_SCHEMA
from tidegate.envelope.position import lsn_place
from tidegate.lake.catalog import open_catalog

LEASE_SECONDS = 2.0
"""Short, so that tests of takeover need not wait long."""


@pytest.fixture
def platform(tmp_path: Path) -> PlatformConfig:
    """A platform whose whole state is below ``tmp_path``."""
    return PlatformConfig(
        lake=LakeConfig(home=str(tmp_path / "lake")),
        gate=GateConfig(lease_seconds=LEASE_SECONDS, wait_seconds=30.0),
    )


@pytest.fixture
def pipeline() -> PipelineConfig:
    """The pipeline ``shop`` with two tables and default sinks."""
    return PipelineConfig(
        pipeline_id="shop",
        source=SourceConfig(
            password="unused", database="shop", tables=("public.customers", "public.orders")
        ),
    )


@pytest.fixture
def catalog(platform: PlatformConfig, pipeline: PipelineConfig) -> Iterator[Catalog]:
    """The catalog of ``platform``."""
    opened = open_catalog(platform, pipeline)
    yield opened
    opened.close()


def log_rows(
    lsns: Iterable[int],
    table: str = "public.orders",
    epoch: str = "e1",
    captured_at: datetime | None = None,
) -> pa.RecordBatch:
    """Change-log rows, one insert per LSN."""
    at = captured_at or datetime.now(UTC)
    return pa.RecordBatch.from_pylist(
        [
            {
                "epoch": epoch,
                "shard": "0",
                "position": lsn_place(lsn, 1),
                "tx_id": lsn,
                "commit_ts": at,
                "captured_at": at,
                "table": table,
                "op": "c",
                "schema_id": "s",
                "key": [str(lsn)],
                "before": None,
                "after": [str(lsn), "x"],
                "unchanged": None,
                "event_id": f"{epoch}-{lsn}",
            }
            for lsn in lsns
        ],
        schema=ARROW_SCHEMA,
    )
