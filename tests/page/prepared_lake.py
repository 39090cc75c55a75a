"""A lake to look at, written without a JVM: four tables, each with its gate in another way.

``public.customers`` is open, proven and has a past; ``public.orders`` is held by a schema change;
``public.payments`` has dead letters; ``public.visits`` is being swept.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import DecimalType, IcebergType, LongType, NestedField, StringType

from tests.support.changes import Clock, ModelTable, batch, money, number, schema, text
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.dead_letter import Parked, Role
from tidegate.envelope.position import Position
from tidegate.lake import commits
from tidegate.lake.catalog import ensure_namespace, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.coverage import Coverage
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.gate import Gate
from tidegate.lake.positions import summary
from tidegate.lake.proofs import Proof, Proofs
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.schema_hold import HOLD_MARK
from tidegate.names import LETTERS_PROPERTY, POSITION_PROPERTY, RUN_PROPERTY, STEP_PROPERTY
from tidegate.schema.table import Column, TableSchema

PIPELINE = "shop"
CUSTOMERS, ORDERS, PAYMENTS, VISITS = (
    f"public.{name}" for name in ("customers", "orders", "payments", "visits")
)
BATCHES = 9
SPARK_CONF = {"spark.sql.shuffle.partitions": "2"}
_LAKE_TYPES: dict[str, IcebergType] = {
    "long": LongType(),
    "string": StringType(),
    "decimal(12,2)": DecimalType(12, 2),
}


@dataclass
class PreparedLake:
    """The folder that ``tidegate serve`` is started on, and the lake it shows."""

    folder: Path
    platform: PlatformConfig
    pipeline: PipelineConfig
    catalog: Catalog

    @property
    def gate(self) -> Gate:
        return Gate(self.catalog, self.pipeline, self.platform.gate)

    def state(self, table: str) -> str:
        return self.gate.states([table])[table].state.value


def configured(folder: Path, **source: Any) -> PreparedLake:
    """``platform.yaml`` and ``pipelines/shop.yaml`` below ``folder``; the lake is empty."""
    pipelines = folder / "pipelines"
    pipelines.mkdir(parents=True)
    described = {
        "pipeline_id": PIPELINE,
        "source": {
            "host": "127.0.0.1",
            "port": 1,  # nobody listens: the page shows that, too
            "database": "shop",
            "password": "${SHOP_PASSWORD:-not-in-any-answer}",
            "tables": [CUSTOMERS, ORDERS, PAYMENTS, VISITS],
            "connect_timeout_seconds": 2,
            **source,
        },
    }
    file = pipelines / "shop.yaml"
    file.write_text(yaml.safe_dump(described), encoding="utf-8")
    platform_file = folder / "platform.yaml"
    spark = {"master": "local[2]", "driver_memory": "1g", "conf": SPARK_CONF}
    runs_on = {"lake": {"home": "home"}, "retry": {"max_attempts": 1}, "spark": spark}
    platform_file.write_text(yaml.safe_dump(runs_on), encoding="utf-8")
    platform = load_platform(platform_file)
    pipeline = load_pipeline(file)
    return PreparedLake(folder, platform, pipeline, open_catalog(platform, pipeline))


def prepared(folder: Path) -> PreparedLake:
    """The lake of this module's description."""
    lake = configured(folder)
    _Writer(lake).write()
    return lake


class _Writer:
    """Writes what capture, sweeps and applies would have written."""

    def __init__(self, lake: PreparedLake) -> None:
        self._lake, self._catalog, self._pipeline = lake, lake.catalog, lake.pipeline
        self._clock = Clock(lsn=0x16B374D840)
        self._history = SchemaHistory(self._catalog, self._pipeline)
        self._reports = Reports(self._catalog, self._pipeline)
        self._log = ChangeLog(self._catalog, self._pipeline)
        self._chance = random.Random(7)

    def write(self) -> None:
        self._log.create(self._clock.position)
        ensure_namespace(self._catalog, PIPELINE)
        self._customers()
        self._orders()
        self._payments()
        self._table(_schema(VISITS, number("id", 0), text("page")))
        gate = self._lake.gate
        gate.hold([ORDERS], f"{HOLD_MARK}: amount has another type", "apply run")
        gate.begin_sweep("sweep_7f3a", [VISITS], "ann", "counts were off")

    def _customers(self) -> None:
        model = self._table(_schema(CUSTOMERS, number("id", 0), text("name"), text("city")))
        for turn in range(BATCHES):
            rows = self._chance.randrange(20, 90)
            for place in range(rows):
                model.insert(str(turn * 100 + place + 1), f"Customer {place}", "Oslo")
            if turn:
                model.update(model.find("1"), city=("Bergen", "Tromsø")[turn % 2])
            self._capture(model)
            self._apply(CUSTOMERS, rows, inserted=rows, updated=int(turn > 0))
        head = self._load(CUSTOMERS).current_snapshot()
        assert head is not None
        known = Coverage()
        known = known.after(known.next(1.0), (), self._clock.position, datetime.now(UTC))
        Proofs(self._catalog, self._pipeline).add(
            [Proof(CUSTOMERS, "verify_1", head.snapshot_id, known)]
        )
        model.insert("5001", "Late", "Bodø")  # captured, and not applied yet
        self._capture(model)

    def _orders(self) -> None:
        before = _schema(ORDERS, number("id", 0), money("amount"), text("coupon"))
        model = self._table(before)
        model.insert("1", "10.00", None)
        self._capture(model)
        self._apply(ORDERS, 1, inserted=1)
        after = _schema(ORDERS, number("id", 0), text("amount"), text("coupon"), text("channel"))
        model.evolve(after)
        self._clock.commit()  # something else happened: the change lies after what was applied
        self._history.record(after, self._clock.position)
        model.insert("2", "10.00 EUR", None, "web")
        self._capture(model)

    def _payments(self) -> None:
        model = self._table(_schema(PAYMENTS, number("id", 0), money("amount")))
        model.insert("1", "5.00")
        model.insert("2", "not a number")
        model.insert("3", "7.00")
        model.update(model.find("2"), amount="8.00")
        events = self._capture(model)
        failed, waits = events[1], events[3]
        DeadLetters(self._catalog, self._pipeline).route(
            PAYMENTS,
            "batch_1",
            "apply_9",
            [
                _letter(failed, Role.FAILED, "amount is no numeric(12,2)"),
                _letter(waits, Role.WAITING, "waits behind an earlier change of the same row"),
            ],
        )
        self._apply(PAYMENTS, 2, {LETTERS_PROPERTY: "batch_1"}, inserted=2, parked=2)

    def _table(self, known: TableSchema) -> ModelTable:
        """A lake table that was swept once, empty, and its source."""
        fields = [
            NestedField(place, column.name, _LAKE_TYPES[str(column.type)], required=place == 1)
            for place, column in enumerate(known.columns, start=1)
        ]
        identifier = (PIPELINE, known.table.name)
        table = self._catalog.create_table(
            identifier,
            Schema(*fields, identifier_field_ids=[1]),
            properties={"format-version": "2"},
        )
        self._history.record(known, self._clock.position)
        self._commit(table, 0, "sweep", "sweep_1", {})
        return ModelTable(known, self._clock)

    def _capture(self, model: ModelTable) -> list[dict[str, Any]]:
        """Every change of the open transaction, into the change log."""
        known = len(model.events)
        model.commit()
        now = datetime.now(UTC)
        fresh = [{**e, "commit_ts": now, "captured_at": now} for e in model.events[known:]]
        writer = self._log.writer()
        writer.write(batch(fresh))
        writer.commit(self._clock.position)
        return fresh

    def _apply(
        self, source: str, rows: int, facts: dict[str, str] | None = None, **counts: int
    ) -> None:
        run = f"apply_{self._clock.lsn & 0xFFF:x}"
        snapshot = self._commit(self._load(source), rows, "apply", run, facts or {})
        entry = {
            "table": source,
            "status": "applied",
            "snapshot_id": snapshot,
            "to_position": str(self._clock.position),
            "seconds": round(self._chance.uniform(0.4, 2.5), 2),
            **counts,
        }
        self._reports.add("apply", run, {"tables": [entry]})

    def _commit(self, table: Table, rows: int, step: str, run: str, facts: dict[str, str]) -> int:
        stamp = {
            POSITION_PROPERTY: str(self._clock.position),
            STEP_PROPERTY: step,
            RUN_PROPERTY: run,
            **facts,
        }
        arrow = schema_to_pyarrow(table.schema(), include_field_ids=False)
        current = table.current_snapshot()
        first = 0 if current is None else int(summary(current).get("total-records", 0))
        columns = [
            pa.array(range(first + 1, first + rows + 1), field.type)
            if field.name == "id"
            else pa.nulls(rows, field.type)
            for field in arrow
        ]
        data = pa.Table.from_arrays(columns, schema=arrow)
        files = commits.write_files(table, data) if rows else ()
        return commits.append_files(table, files, stamp, commits.head_id(table))

    def _load(self, source: str) -> Table:
        return self._catalog.load_table((PIPELINE, source.partition(".")[2]))


def _schema(table: str, *columns: Column) -> TableSchema:
    """Numbered as a source numbers tables and columns: the same column keeps its number."""
    own = [replace(column, number=place) for place, column in enumerate(columns, start=1)]
    return replace(schema(table, *own), relation=7)


def _letter(event: dict[str, Any], role: Role, message: str) -> Parked:
    key = tuple(event["key"])
    return Parked(
        position=Position(event["epoch"], event["position"]),
        key=key,
        new_key=key,
        role=role,
        code="apply.cast",
        message=message,
        event=event,
    )
