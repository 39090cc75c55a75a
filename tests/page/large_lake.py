"""A lake of many tables to look at: four pipelines, 500 tables, a day of runs; without a JVM.

A table's metadata is one file that is written from a pattern, so 500 tables take some seconds. The
data files are one table's own: whoever reads rows here reads the pattern's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import yaml
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import LongType, NestedField

from tests.page.prepared_lake import PreparedLake
from tests.support.changes import Clock
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.envelope.position import Position
from tidegate.lake import commits
from tidegate.lake.catalog import ensure_namespace, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.coverage import Coverage
from tidegate.lake.gate import Gate
from tidegate.lake.pauses import Pauses
from tidegate.lake.proofs import Proof, Proofs
from tidegate.lake.reports import REPORT_VERSION, Reports
from tidegate.lake.schema_hold import HOLD_MARK
from tidegate.names import POSITION_PROPERTY, RUN_PROPERTY, STEP_PROPERTY
from tidegate.observability.caller import Caller, Surface, acting_as

SCHEMAS: Final = {
    "shop": {"public": 24, "sales": 61, "crm": 38, "warehouse": 57},
    "billing": {"public": 40, "ledger": 80, "tax": 30},
    "erp": {"hr": 36, "purchasing": 54, "production": 48},
    "tracking": {"public": 32},
}
"""Pipelines, their schemas, and how many tables each has: 500."""
_WORDS: Final = ("orders", "items", "prices", "stock", "customers", "events", "invoices", "terms")


def named(schema: str, number: int) -> str:
    return f"{schema}.{_WORDS[number % len(_WORDS)]}_{number:02}"


HELD: Final = named("sales", 7)
HELD_TOO: Final = named("sales", 8)
HELD_BY_HAND: Final = named("sales", 21)
FAILED: Final = named("crm", 3)
SWEPT: Final = named("warehouse", 11)
LATE: Final = named("ledger", 4)
NEW: Final = named("tax", 29)
SINK: Final = {
    "sink_id": "lake",
    "sink_type": "iceberg",
    "iceberg": {"table_name": "{schema}_{table}"},
}
HOURS: Final = 24
SILENT: Final = (9, 13)
"""Hours ago between which nothing ran: a gap in every plot."""


@dataclass(frozen=True)
class Pattern:
    """A table with two snapshots: swept, then applied to."""

    metadata: TableMetadata
    swept: int
    applied: int


def tables_of(pipeline: str) -> list[str]:
    return [named(schema, n) for schema, most in SCHEMAS[pipeline].items() for n in range(most)]


def large(folder: Path) -> PreparedLake:
    """The lake of this module's description; what is returned is the pipeline ``shop``."""
    (folder / "pipelines").mkdir(parents=True)
    platform_file = folder / "platform.yaml"
    platform_file.write_text(yaml.safe_dump({"lake": {"home": "home"}}), encoding="utf-8")
    platform = load_platform(platform_file)
    found = [_write(folder, platform, name) for name in SCHEMAS]
    return found[0]


def _write(folder: Path, platform: PlatformConfig, name: str) -> PreparedLake:
    source = {
        "host": "127.0.0.1",
        "port": 1,
        "database": name,
        "password": "${ANY_PASSWORD:-not-in-any-answer}",
        "tables": tables_of(name),
        "connect_timeout_seconds": 2,
    }
    file = folder / "pipelines" / f"{name}.yaml"
    file.write_text(
        yaml.safe_dump({"pipeline_id": name, "source": source, "sinks": [SINK]}), encoding="utf-8"
    )
    pipeline = load_pipeline(file)
    lake = PreparedLake(folder, platform, pipeline, open_catalog(platform, pipeline))
    _Writer(lake, datetime.now(UTC)).write()
    return lake


class _Writer:
    """One pipeline's day."""

    def __init__(self, lake: PreparedLake, now: datetime) -> None:
        self._pipeline: PipelineConfig = lake.pipeline
        self._catalog: Catalog = lake.catalog
        self._gate: Gate = lake.gate
        self._name = lake.pipeline.pipeline_id
        self._now = now
        self._clock = Clock(lsn=0x16B374D840)
        self._places: list[Position] = []

    def write(self) -> None:
        self._write_log()
        ensure_namespace(self._catalog, self._name)
        pattern = self._pattern()
        for place, target in enumerate(self._pipeline.targets):
            if target.source != NEW:
                late = target.source == LATE
                at = self._places[-6 if late else -1]
                self._forge(target.identifier, stamped(pattern, at, self._now, place))
        self._write_reports(pattern)
        self._prove(pattern)
        if self._name == "shop":
            gate = self._gate
            gate.hold([HELD_BY_HAND], "migration at 14:00, see the change calendar", "ann (cli)")
            reason = f"{HOLD_MARK}: column amount was numeric(12,2) and is text now"
            gate.hold([HELD, HELD_TOO], reason, "apply_2f41")
            gate.begin_sweep("sweep_7f3a", [SWEPT], "ann (cli)", "counts were off")
        if self._name == "tracking":
            with acting_as(Caller("ann", Surface.CLI)):
                Pauses(self._catalog, self._pipeline).say(stopped=True, reason="the source moves")

    def _write_log(self) -> None:
        """A commit of the log every hour but for the silent ones, as if it had been a day."""
        log = ChangeLog(self._catalog, self._pipeline)
        log.create(self._clock.position)
        ago = [hours for hours in range(HOURS, 0, -1) if not SILENT[0] <= hours - 1 < SILENT[1]]
        for _ in ago[1:]:
            self._clock.lsn += 0x400000
            log.commit_idle(self._clock.position)
            self._places.append(self._clock.position)
        moments = [self._now - timedelta(hours=hours, minutes=-59) for hours in ago]
        metadata = self._catalog.load_table(log.identifier).metadata
        self._forge(log.identifier, filled(timed(metadata, moments)))

    def _pattern(self) -> Pattern:
        identifier = (self._name, "pattern")
        schema = Schema(NestedField(1, "id", LongType(), required=True), identifier_field_ids=[1])
        table = self._catalog.create_table(identifier, schema, properties={"format-version": "2"})
        arrow = schema_to_pyarrow(schema, include_field_ids=False)
        rows = pa.table({"id": range(1200)}, schema=arrow)
        found = []
        for step in ("sweep", "apply"):
            facts = {POSITION_PROPERTY: str(self._clock.position), STEP_PROPERTY: step}
            facts[RUN_PROPERTY] = f"{step}_1"
            files = commits.write_files(table, rows)
            found.append(commits.append_files(table, files, facts, commits.head_id(table)))
        metadata = self._catalog.load_table(identifier).metadata
        self._catalog.drop_table(identifier)
        return Pattern(metadata, found[0], found[1])

    def _forge(self, identifier: tuple[str, ...], metadata: TableMetadata) -> None:
        """The table with this metadata, in place of the one there is."""
        if self._catalog.table_exists(identifier):
            self._catalog.drop_table(identifier)
        folder = f"{metadata.location.rpartition('/')[0]}/{identifier[-1]}"
        metadata = metadata.model_copy(update={"location": folder})
        place = f"{folder}/metadata/00001-{uuid.uuid4()}.metadata.json"
        io = self._catalog._load_file_io(location=place)
        ToOutputFile.table_metadata(metadata, io.new_output(place))
        self._catalog.register_table(identifier, place)

    def _write_reports(self, pattern: Pattern) -> None:
        rows = list(self._reports(pattern))
        rows.sort(key=lambda row: row["at"])
        Reports(self._catalog, self._pipeline)._ledger.add(rows)

    def _reports(self, pattern: Pattern) -> Iterator[dict[str, Any]]:
        """A sweep of everything, then an apply every half hour but for the silent hours."""
        names = [name for name in self._pipeline.source.tables if name != NEW]
        swept = [
            {"table": name, "status": "swept", "rows": 1200, "snapshot_id": pattern.swept}
            for name in names
        ]
        yield self._report("sweep", "sweep_1", HOURS - 0.5, {"tables": swept, "seconds": 59.0})
        for half in range(2 * HOURS - 3):
            hours = (half + 0.5) / 2
            if SILENT[0] <= hours < SILENT[1]:
                continue
            busy = names[half % 7 :: 7]
            entries = [self._entry(name, half, place) for place, name in enumerate(busy)]
            body = {"tables": entries, "seconds": 4.0}
            yield self._report("apply", f"apply_{half:04x}", hours, body)
        if FAILED in names:
            error = {
                "code": "apply.row_missing",
                "message": "a row that a change needs is not in the lake table",
                "hint": f"sweep the table: `tidegate sweep --table {FAILED}`",
            }
            entry = {"table": FAILED, "status": "failed", "error": error, "seconds": 1.0}
            yield self._report("apply", "apply_last", 0.1, {"tables": [entry], "seconds": 1.0})

    def _entry(self, name: str, half: int, place: int) -> dict[str, Any]:
        return {
            "table": name,
            "status": "applied",
            "inserted": 40 + (half * 37 + place * 13) % 400,
            "updated": (half * 11) % 90,
            "seconds": 0.4 + place % 5 / 5,
            "snapshot_id": 1,
        }

    def _report(
        self, kind: str, run: str, hours_ago: float, body: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "version": REPORT_VERSION,
            "kind": kind,
            "run": run,
            "at": self._now - timedelta(hours=hours_ago),
            "body": json.dumps(body),
        }

    def _prove(self, pattern: Pattern) -> None:
        """Two of three tables; none of ``billing``."""
        if self._name == "billing":
            return
        all_keys = Coverage()
        at = self._now - timedelta(hours=2)
        all_keys = all_keys.after(all_keys.next(1.0), (), self._places[-3], at)
        names = [name for place, name in enumerate(self._pipeline.source.tables) if place % 3]
        Proofs(self._catalog, self._pipeline).add(
            [Proof(name, "verify_1", pattern.applied, all_keys) for name in names]
        )


def stamped(pattern: Pattern, at: Position, now: datetime, place: int) -> TableMetadata:
    """The pattern as another table that stands at ``at``."""
    metadata = pattern.metadata.model_copy(update={"table_uuid": uuid.uuid4()})
    last = metadata.snapshots[-1]
    assert last.summary is not None
    summary = last.summary.model_copy(deep=True)
    summary.additional_properties[POSITION_PROPERTY] = str(at)
    summary.additional_properties["total-records"] = str(1200 + 37 * place)
    moved = last.model_copy(update={"summary": summary})
    metadata = metadata.model_copy(update={"snapshots": [*metadata.snapshots[:-1], moved]})
    return timed(metadata, [now - timedelta(hours=23), now - timedelta(minutes=place % 50 + 1)])


def filled(metadata: TableMetadata) -> TableMetadata:
    """The log as if every commit had brought rows: else no table could be behind it."""
    snapshots = []
    for snapshot in metadata.snapshots:
        assert snapshot.summary is not None
        summary = snapshot.summary.model_copy(deep=True)
        summary.additional_properties["added-records"] = "1000"
        snapshots.append(snapshot.model_copy(update={"summary": summary}))
    return metadata.model_copy(update={"snapshots": snapshots})


def timed(metadata: TableMetadata, moments: list[datetime]) -> TableMetadata:
    """The same snapshots at other times."""
    snapshots = [
        snapshot.model_copy(update={"timestamp_ms": int(moment.timestamp() * 1000)})
        for snapshot, moment in zip(metadata.snapshots, moments, strict=True)
    ]
    return metadata.model_copy(update={"snapshots": snapshots, "snapshot_log": []})
