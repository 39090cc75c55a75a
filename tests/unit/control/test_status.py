"""Status and lag from the lake's own records."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from tests.support.lake import log_rows
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control import gates, lakehouse
from tidegate.control.series import series
from tidegate.control.status import lag, status
from tidegate.control.tables import known_tables, one_table
from tidegate.envelope.position import Position, boundary
from tidegate.errors import ConfigError, HeldError
from tidegate.lake import commits
from tidegate.lake.catalog import ensure_namespace
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.log_table import LOG_SCHEMA
from tidegate.lake.log_times import LogTimes
from tidegate.lake.looked import worth_noting
from tidegate.lake.reports import Reports
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY


def lake_table(catalog: Catalog, name: str, at: Position | None) -> int | None:
    """A lake table as a sweep leaves it, standing at ``at``."""
    ensure_namespace(catalog, "shop")
    table = catalog.create_table(("shop", name), LOG_SCHEMA, properties={"format-version": "2"})
    if at is None:
        return None
    files = commits.write_files(table, pa.Table.from_batches([log_rows([1, 2, 3])]))
    stamp = {POSITION_PROPERTY: str(at), STEP_PROPERTY: "sweep"}
    return commits.append_files(table, files, stamp, None)


def capture(change_log: ChangeLog, through: Position) -> None:
    """A commit of the log with rows, whosever they are."""
    writer = change_log.writer()
    writer.write(log_rows([1, 2, 3]))
    writer.commit(through)


def test_a_pipeline_that_is_not_deployed_needs_a_deploy(
    platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    found = status(pipeline, platform, ask_source=False)
    assert not found.deployed
    assert {table.needs for table in found.tables} == {"deploy"}


def test_tables_stand_where_their_snapshots_say(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    change_log = ChangeLog(catalog, pipeline)
    change_log.create(boundary("e1", 100))
    snapshot = lake_table(catalog, "orders", boundary("e1", 100))
    capture(change_log, boundary("e1", 400))
    Reports(catalog, pipeline).add(
        "apply", "r1", {"tables": [{"table": "public.orders", "status": "applied"}]}
    )
    found = status(pipeline, platform, ask_source=False)
    customers, orders = found.tables
    assert found.captured_through == str(boundary("e1", 400))
    assert (customers.exists, customers.needs) == (False, "a first sweep")
    assert (orders.snapshot_id, orders.rows, orders.needs) == (snapshot, 3, None)
    assert orders.lag_bytes == 300
    assert orders.lag_seconds is not None and orders.lag_seconds < 60
    assert orders.last_apply is not None and orders.last_apply["run"] == "r1"
    behind = lag(pipeline, platform, ask_source=False)
    assert [table.bytes for table in behind.tables] == [None, 300]


def test_a_table_of_another_epoch_needs_a_sweep(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    ChangeLog(catalog, pipeline).create(boundary("e2", 100))
    lake_table(catalog, "orders", boundary("e1", 900))
    orders = status(pipeline, platform, ask_source=False).tables[1]
    assert orders.needs is not None and "sweep" in orders.needs
    assert orders.lag_bytes is None


def test_where_nothing_was_captured_nothing_is_behind(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    change_log = ChangeLog(catalog, pipeline)
    change_log.create(boundary("e1", 100))
    capture(change_log, boundary("e1", 400))
    lake_table(catalog, "orders", boundary("e1", 400))
    lake_table(catalog, "customers", boundary("e1", 100))
    for lsn in (500, 90_000, 70 * 2**20):
        change_log.commit_idle(boundary("e1", lsn))
    customers, orders = status(pipeline, platform, ask_source=False).tables
    assert (orders.lag_bytes, orders.lag_seconds) == (0, 0.0)
    assert orders.position == str(boundary("e1", 400))
    assert orders.reflects == str(boundary("e1", 70 * 2**20))
    assert (customers.lag_bytes, customers.reflects) == (70 * 2**20 - 100, customers.position)


def test_a_quiet_table_among_busy_ones_lags_since_it_was_last_looked_for(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    change_log, reports = ChangeLog(catalog, pipeline), Reports(catalog, pipeline)
    change_log.create(boundary("e1", 100))
    lake_table(catalog, "orders", boundary("e1", 100))

    def looked(low: int, high: int, status: str = "unchanged") -> None:
        ends = {"from_position": boundary("e1", low), "to_position": boundary("e1", high)}
        entry = {"table": "public.orders", "status": status, **ends}
        reports.add("apply", f"r{high}", {"tables": [entry]})

    def behind() -> int | None:
        return status(pipeline, platform, ask_source=False).tables[1].lag_bytes

    capture(change_log, boundary("e1", 400))
    looked(100, 400)
    assert behind() == 0
    capture(change_log, boundary("e1", 500))
    assert behind() == 100, "perhaps; the next apply tells"
    looked(100, 500)
    assert behind() == 0
    capture(change_log, boundary("e1", 600))
    looked(400, 600)  # said of another place
    looked(100, 600, status="failed")
    assert behind() == 100
    assert worth_noting(
        [("public.orders", boundary("e1", 100), boundary("e1", 600))],
        LogTimes.read(catalog, pipeline),
        reports.recent,
        seconds=0,
    )
    # The change that came then waited since then, in the charts too.
    table = catalog.load_table(("shop", "orders"))
    stamp = {POSITION_PROPERTY: str(boundary("e1", 600)), STEP_PROPERTY: "apply"}
    commits.append_files(table, (), stamp, commits.head_id(table))
    last = series(pipeline, platform, "public.orders").points[-1]
    captured_at = LogTimes.read(catalog, pipeline).times[-1]
    assert last.lag_seconds == (last.at - captured_at).total_seconds()


def test_seconds_behind_count_from_when_the_log_moved_on() -> None:
    now = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    marks = [boundary("e", lsn) for lsn in (100, 200, 300)]
    times = LogTimes(
        marks[-1],
        now,
        tuple(mark.place for mark in marks),
        (now - timedelta(hours=2), now - timedelta(hours=1), now - timedelta(minutes=1)),
    )
    assert times.seconds_behind(boundary("e", 100), now) == 3600
    assert times.seconds_behind(boundary("e", 200), now) == 60
    quiet = replace(times, quiet=frozenset({marks[1].place}))  # nothing was captured up to there
    assert quiet.seconds_behind(boundary("e", 100), now) == 60
    assert quiet.through(boundary("e", 100)) == marks[1]
    assert quiet.through(boundary("e", 50)) == boundary("e", 50), "older than what is known"
    assert times.seconds_behind(boundary("e", 300), now) == 0
    assert times.seconds_behind(boundary("e", 999), now) == 0
    assert times.seconds_behind(boundary("other", 100), now) is None


def test_gates_are_held_opened_and_remembered(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    held = gates.hold(pipeline, platform, ["public.orders"], reason="look", actor="me")
    assert [(g.table, g.state, g.reason, g.actor) for g in held.gates] == [
        ("public.orders", "held", "look", "me")
    ]
    opened = gates.open_gates(pipeline, platform, None, reason="done", actor="me")
    assert {gate.state for gate in opened.gates} == {"open"}
    shown = gates.show(pipeline, platform, events=10)
    assert [(m.event, m.reason) for m in shown.timeline] == [("hold", "look"), ("open", "done")]


def test_a_sweep_is_only_overruled_by_abandoning_it(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    Gate(catalog, pipeline, platform.gate).begin_sweep("s1", ["public.orders"], "me")
    with pytest.raises(HeldError):
        gates.open_gates(pipeline, platform, ["public.orders"], reason="x", actor="me")
    opened = gates.open_gates(
        pipeline, platform, ["public.orders"], reason="x", actor="me", abandon=True
    )
    assert opened.gates[0].state == "open"


def test_snapshots_and_queries_of_the_past(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    snapshot = lake_table(catalog, "orders", boundary("e1", 100))
    assert snapshot is not None
    (row,) = lakehouse.snapshots(pipeline, platform)
    assert (row.table, row.snapshot_id, row.current, row.rows) == (
        "public.orders",
        snapshot,
        True,
        3,
    )
    wanted = lakehouse.Query(snapshot_id=snapshot, where="tx_id > 1", columns=("tx_id",), limit=1)
    found = lakehouse.query(pipeline, platform, None, wanted)
    assert found.table == "public.orders", "the snapshot says which table"
    assert (found.columns, len(found.rows), found.complete) == (("tx_id",), 1, False)
    assert lakehouse.find_snapshot(pipeline, platform, None, snapshot) == "public.orders"


def test_what_cannot_be_read_is_said(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    def code(table: str | None, wanted: lakehouse.Query) -> str:
        with pytest.raises(ConfigError) as caught:
            lakehouse.query(pipeline, platform, table, wanted)
        return caught.value.code

    assert code(None, lakehouse.Query()) == "control.which_table"
    assert code("public.orders", lakehouse.Query()) == "lakehouse.no_table"
    assert code(None, lakehouse.Query(snapshot_id=7)) == "lakehouse.no_snapshot"
    lake_table(catalog, "orders", boundary("e1", 1))
    assert code("public.orders", lakehouse.Query(where="tx_id >>> 1")) == "query.where"


def test_tables_are_those_of_the_pipeline(pipeline: PipelineConfig) -> None:
    assert known_tables(pipeline, None) is None
    assert known_tables(pipeline, ["orders", "public.orders"]) == ("public.orders",)
    assert one_table(pipeline, "customers") == "public.customers"
    with pytest.raises(ConfigError, match=r"public\.nothing"):
        known_tables(pipeline, ["public.nothing"])


def test_adjusted_values_are_told_since_the_last_sweep(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    ChangeLog(catalog, pipeline).create(boundary("e1", 100))
    reports = Reports(catalog, pipeline)

    def run(kind: str, status: str, **adjusted: int) -> None:
        entry = {"table": "public.orders", "status": status, "adjusted": adjusted}
        reports.add(kind, "r", {"tables": [entry]})

    run("apply", "applied", day=100)
    run("sweep", "swept", day=2)
    run("sweep", "failed", day=1000)
    run("apply", "applied", day=3, amount=1)
    customers, orders = status(pipeline, platform, ask_source=False).tables
    assert customers.adjusted == {}
    assert orders.adjusted == {"day": 5, "amount": 1}
