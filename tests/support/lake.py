"""A real catalog and warehouse in a temporary directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import GateConfig, LakeConfig, PlatformConfig
from tidegate.config.source import SourceConfig
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
        source=SourceConfig(database="shop", tables=("public.customers", "public.orders")),
    )


@pytest.fixture
def catalog(platform: PlatformConfig, pipeline: PipelineConfig) -> Iterator[Catalog]:
    """The catalog of ``platform``."""
    opened = open_catalog(platform, pipeline)
    yield opened
    opened.close()
