"""A pipeline of model tables on the shared Spark platform: write, apply, read the lake."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.changes import EPOCH, Clock, ModelTable, batch
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import GateConfig, PlatformConfig
from tidegate.config.sinks import IcebergSink, SinkConfig, SinkType, TableOptions
from tidegate.config.source import SourceConfig
from tidegate.envelope.position import Position
from tidegate.jobs.apply import ApplyResult, run_apply
from tidegate.lake import positions
from tidegate.lake.catalog import ensure_namespace, load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.tables import create_sql, shape_sql
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY, quote_spark
from tidegate.schema.table import TableSchema
from tidegate.spark import publish


class LakeLab:
    """Model tables, their change log and their lake tables."""

    def __init__(
        self,
        spark: SparkSession,
        platform: PlatformConfig,
        options: dict[str, TableOptions],
        **lake: Any,
    ) -> None:
        self.spark = spark
        self.platform = platform.model_copy(
            update={"gate": GateConfig(lease_seconds=20, wait_seconds=60)}
        )
        self.pipeline = PipelineConfig(
            pipeline_id=f"lab_{uuid.uuid4().hex[:10]}",
            source=SourceConfig(password="unused", database="lab", tables=tuple(options)),
            sinks=(
                SinkConfig(
                    sink_id="lake",
                    sink_type=SinkType.ICEBERG,
                    iceberg=IcebergSink(tables=options, **lake),
                ),
            ),
        )
        self.catalog: Catalog = open_catalog(self.platform, self.pipeline)
        self.clock = Clock()
        self.log = ChangeLog(self.catalog, self.pipeline)
        self.log.create(self.clock.position)
        self.history = SchemaHistory(self.catalog, self.pipeline)
        self.gate = Gate(self.catalog, self.pipeline, self.platform.gate)
        self.tables: dict[str, ModelTable] = {}

    def add(self, schema: TableSchema, *, full: bool = False) -> ModelTable:
        """A model table with an empty lake table at the present position."""
        model = ModelTable(schema, self.clock, full=full)
        self.tables[model.name] = model
        target = self.target(model)
        ensure_namespace(self.catalog, target.namespace)
        self.spark.sql(create_sql(target, schema))
        for statement in shape_sql(target, schema):
            self.spark.sql(statement)
        properties = {POSITION_PROPERTY: str(self.clock.position), STEP_PROPERTY: "sweep"}
        publish.stamp(self.spark, target, branch=None, properties=properties)
        return model

    def target(self, model: ModelTable) -> Any:
        return self.pipeline.target(model.schema.table)

    def capture(self, models: Iterable[ModelTable] | None = None) -> Position:
        """Write what the models did since the last time to the log."""
        events = []
        for model in self.tables.values() if models is None else models:
            self.history.record(model.schema, Position(EPOCH, "0"))
            events += model.events
            model.events = []
        writer = self.log.writer()
        if events:
            writer.write([batch(events)])
        return writer.commit(self.clock.position).captured_through

    def apply(self, **options: Any) -> ApplyResult:
        return run_apply(self.spark, self.pipeline, self.platform, run="test", **options)

    def position(self, model: ModelTable) -> Position | None:
        table = load(self.catalog, self.target(model).identifier)
        assert table is not None
        return positions.applied(table)

    def snapshots(self, model: ModelTable) -> int:
        table = load(self.catalog, self.target(model).identifier)
        assert table is not None
        return len(table.metadata.snapshots)

    def refs(self, model: ModelTable) -> set[str]:
        table = load(self.catalog, self.target(model).identifier)
        assert table is not None
        return set(table.metadata.refs)

    def rows(self, model: ModelTable, *extra: str, where: str = "true") -> list[tuple[Any, ...]]:
        """Lake rows as texts, sorted."""
        target = self.target(model)
        table = self.spark.table(quote_spark("lake", target.namespace, target.name)).where(where)
        names = [column.name for column in model.schema.columns]
        found = table.select(*(F.col(quote_spark(n)).cast("string") for n in (*names, *extra)))
        return sorted((tuple(row) for row in found.collect()), key=repr)


def expected_upsert(model: ModelTable) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in model.rows), key=repr)


def expected_append(model: ModelTable) -> list[tuple[Any, ...]]:
    return sorted(((*row, op, at) for op, at, *row in model.appended), key=repr)


def expected_history(model: ModelTable) -> list[tuple[Any, ...]]:
    return sorted(
        (
            (*v.row, v.begin, v.end, str(v.end is None).lower(), str(v.deleted).lower())
            for v in model.versions
        ),
        key=repr,
    )


def expected_soft(model: ModelTable) -> list[tuple[Any, ...]]:
    """Current rows, and the last version of every key that has none any more."""
    alive = {model.key_of(row) for row in model.rows}
    last = {}
    for version in model.versions:
        if version.key not in alive:
            last[version.key] = version
    rows = [(*row, "false", None) for row in model.rows]
    rows += [(*v.row, "true", v.end) for v in last.values()]
    return sorted(rows, key=repr)


HISTORY = ("_cdc_from_position", "_cdc_to_position", "_cdc_current", "_cdc_deleted")
Check = Callable[[LakeLab, ModelTable], None]


def check_upsert(lab: LakeLab, model: ModelTable) -> None:
    assert lab.rows(model) == expected_upsert(model)


def check_soft(lab: LakeLab, model: ModelTable) -> None:
    assert lab.rows(model, "_cdc_deleted", "_cdc_position") == expected_soft(model)


def check_append(lab: LakeLab, model: ModelTable) -> None:
    assert lab.rows(model, "_cdc_op", "_cdc_position") == expected_append(model)


def check_history(lab: LakeLab, model: ModelTable) -> None:
    assert lab.rows(model, *HISTORY) == expected_history(model)
