"""The pipeline ``shop``: a real change log of model tables, lake tables that stand somewhere.

No Spark: lake tables are empty format-2 tables whose snapshots carry positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from tests.support.changes import Clock, ModelTable, batch, money, number, schema, text
from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position
from tidegate.lake import commits
from tidegate.lake.catalog import ensure_namespace, load
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY, TableId

ORDERS, CUSTOMERS = "public.orders", "public.customers"


@dataclass
class Shop:
    """Two tables, ``orders`` (with replica identity FULL) and ``customers``."""

    catalog: Catalog
    pipeline: PipelineConfig
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.orders = ModelTable(
            schema(ORDERS, number("id", key=0), text("note"), money("price")), self.clock, full=True
        )
        self.customers = ModelTable(
            schema(CUSTOMERS, number("id", key=0), text("name")), self.clock
        )
        self.log = ChangeLog(self.catalog, self.pipeline)
        self.log.create(self.clock.position)
        history = SchemaHistory(self.catalog, self.pipeline)
        for table in (self.orders, self.customers):
            history.record(table.schema, self.clock.position)

    def capture(self, *tables: ModelTable) -> Position:
        """Write what the tables changed since the last capture, in one commit."""
        writer = self.log.writer()
        events = [e for table in tables or (self.orders, self.customers) for e in table.events]
        for table in tables or (self.orders, self.customers):
            table.events.clear()
        if events:
            writer.write(batch(events))
        return writer.commit(self.clock.position).captured_through

    def stands(self, source: str, positions: Sequence[Position], step: str = "apply") -> None:
        """Add a snapshot at each of ``positions`` to the lake table, made on first use."""
        identifier = self.pipeline.target(TableId.parse(source)).identifier
        ensure_namespace(self.catalog, identifier[0])
        table = load(self.catalog, identifier)
        if table is None:
            table = self.catalog.create_table(identifier, pa.schema([("n", pa.int64())]))
        for position in positions:
            facts = {POSITION_PROPERTY: str(position), STEP_PROPERTY: step}
            commits.append_files(table, (), facts, commits.head_id(table))


@pytest.fixture
def shop(catalog: Catalog, pipeline: PipelineConfig) -> Shop:
    """A deployed ``shop`` whose log is empty."""
    return Shop(catalog, pipeline)
