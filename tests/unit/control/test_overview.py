"""What is wrong is found once, told with its reason, and nothing is read twice for it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog

from tests.unit.control.test_status import lake_table
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.activity import BUCKETS, activity, axis, runs
from tidegate.control.attention import conditions, findings, helps
from tidegate.control.overview import overview, steady
from tidegate.control.records import PipelineStatus, TableStatus, VerifiedThrough
from tidegate.control.running import stop
from tidegate.control.status import status
from tidegate.control.status_cache import StatusCache
from tidegate.envelope.position import boundary
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.ledger import Ledger
from tidegate.lake.reports import Report, Reports

NOW = datetime(2026, 11, 19, 12, 10, tzinfo=UTC)
ORDERS = "public.orders"
PROVEN = VerifiedThrough(
    position="e1/1",
    at=NOW,
    coverage=100.0,
    runs=1,
    last_position="e1/1",
    last_at=NOW,
    snapshot_id=1,
)


@pytest.fixture
def swept(
    catalog: Catalog, platform: PlatformConfig, pipeline: PipelineConfig
) -> tuple[PipelineConfig, PlatformConfig]:
    """Deployed, ``orders`` swept, ``customers`` not."""
    ChangeLog(catalog, pipeline).create(boundary("e1", 100))
    lake_table(catalog, "orders", boundary("e1", 100))
    return pipeline, platform


@pytest.fixture
def orders(swept: tuple[PipelineConfig, PlatformConfig]) -> TableStatus:
    """A table that nothing is the matter with."""
    found = status(*swept, ask_source=False).tables
    (own,) = (table for table in found if table.table == ORDERS)
    return replace(own, verified_through=PROVEN)


def failed(at: datetime = NOW) -> dict[str, Any]:
    error = {"code": "apply.row_missing", "message": "a row is missing", "hint": "sweep it"}
    return {"run": "r1", "at": at, "status": "failed", "error": error}


def in_state(table: TableStatus, state: str, reason: str | None = None) -> TableStatus:
    return replace(table, gate=replace(table.gate, state=state, reason=reason, actor="ann"))


def test_each_condition_is_found_and_the_gravest_comes_first(orders: TableStatus) -> None:
    assert conditions(orders) == ()
    assert conditions(replace(orders, verified_through=None)) == ("unproven",)
    assert conditions(replace(orders, lag_seconds=1801.0)) == ("lagging",)
    assert conditions(replace(orders, lag_seconds=1800.0)) == ()
    assert conditions(in_state(orders, "sweeping")) == ("sweeping",)
    assert conditions(replace(in_state(orders, "held"), lag_seconds=9e9)) == ("held",)
    assert conditions(replace(orders, needs="a first sweep")) == ("needs",)
    assert conditions(replace(orders, needs="deploy"), deployed=False) == ()
    differs = replace(PROVEN, differs=True)
    worst = replace(in_state(orders, "held"), verified_through=differs, dead_letters=1)
    assert conditions(worst) == ("differs", "held", "letters")


def test_a_failure_counts_until_something_succeeded_after_it(orders: TableStatus) -> None:
    later = {"run": "r2", "at": NOW + timedelta(minutes=1), "status": "swept"}
    assert conditions(replace(orders, last_apply=failed())) == ("failing",)
    assert conditions(replace(orders, last_sweep=failed())) == ("failing",)
    assert conditions(replace(orders, last_apply=failed(), last_sweep=later)) == ()


@pytest.mark.parametrize(
    ("reason", "action"),
    [
        ("migration at 14:00", "open"),
        ("until the nightly sweep of the source's own", "open"),
        ("the source's schema changed: amount", "approve"),
        ("partition a was emptied → sweep the table, which opens it again", "sweep"),
    ],
)
def test_the_action_is_the_one_that_opens_a_held_table(
    orders: TableStatus, reason: str, action: str
) -> None:
    assert helps(in_state(orders, "held", reason), "held") == action


def test_a_sweep_is_offered_only_for_failures_that_it_ends(orders: TableStatus) -> None:
    locked = {"code": "lake.catalog_locked", "message": "locked", "hint": "try again"}
    passing = replace(orders, last_apply={**failed(), "error": locked})
    assert helps(passing, "failing") == "runs"
    assert helps(replace(orders, last_apply=failed()), "failing") == "sweep"
    assert helps(replace(orders, last_sweep={**failed(), "error": locked}), "failing") == "sweep"


def test_a_sweep_that_failed_is_no_sweep_at_work(
    swept: tuple[PipelineConfig, PlatformConfig], catalog: Catalog
) -> None:
    pipeline, platform = swept
    gate = Gate(catalog, pipeline, platform.gate)
    gate.hold([ORDERS], "look first", "ann")
    gate.begin_sweep("sweep_1", [ORDERS], "bob")
    cache = StatusCache(pipeline, platform)
    (line,) = (one for one in overview(cache, NOW).lines if one.table == ORDERS)
    assert line.state == "sweeping" and line.action is None
    gate.fail_sweep("sweep_1", [ORDERS], "the audit found 3 keys twice")
    now = overview(cache, NOW)
    (line,) = (one for one in now.lines if one.table == ORDERS)
    assert (line.state, line.action) == ("failing", "sweep") and "sweeping" not in line.conditions
    (found,) = (one for one in now.findings if one.kind == "failing")
    assert found.reason == "the sweep failed: the audit found 3 keys twice"
    assert found.since is not None and found.hint is not None and "abandons" in found.hint
    assert line.gate.before is not None and line.gate.before.reason == "look first"


def test_tables_with_the_same_reason_are_one_finding_with_its_fields(
    swept: tuple[PipelineConfig, PlatformConfig], orders: TableStatus
) -> None:
    now = status(*swept, ask_source=False)
    held = in_state(orders, "held", "migration at 14:00")
    both = (held, replace(held, table="public.items"))
    other = replace(in_state(orders, "held", "the source's schema changed: x"), table="public.x")
    broken = replace(orders, table="public.y", last_apply=failed())
    found = findings(of(now, *both, other, broken), deployed=True)
    assert [one.kind for one in found] == ["failing", "held", "held"]
    failing, by_hand, by_schema = found
    assert (failing.code, failing.reason) == ("apply.row_missing", "a row is missing")
    assert (failing.hint, failing.run, failing.action) == ("sweep it", "r1", "sweep")
    assert by_hand.tables == (ORDERS, "public.items")
    assert (by_hand.reason, by_hand.actor) == ("migration at 14:00", "ann")
    assert (by_hand.action, by_schema.action) == ("open", "approve")


def of(now: PipelineStatus, *tables: TableStatus) -> PipelineStatus:
    return replace(now, tables=tables)


def report(kind: str, at: datetime, *entries: dict[str, Any], seq: int = 1) -> Report:
    return Report(seq, kind, f"{kind}_{seq}", at, {"tables": list(entries), "seconds": 2.0})


def test_activity_has_gaps_where_nothing_ran_and_tells_sweeps_apart() -> None:
    entry = {"table": ORDERS, "status": "applied", "inserted": 3, "deleted": 1}
    wrong = {"table": "public.items", "status": "failed"}
    swept = {"table": ORDERS, "status": "swept", "rows": 1000}
    found = [
        report("apply", NOW - timedelta(minutes=5), entry, wrong),
        report("capture", NOW - timedelta(minutes=6)),
        report("sweep", NOW - timedelta(hours=3), swept),
        report("apply", NOW - timedelta(hours=30), entry),
    ]
    whole, each = activity(found, NOW)
    assert len(whole.rows) == BUCKETS and whole.since == axis(NOW)
    assert [rows for rows in whole.rows if rows is not None] == [0, 4]
    assert whole.rows[-1] == 4 and whole.failed[-1] == 1
    assert sum(whole.swept) == 1000
    assert (whole.rows_hour, whole.rows_day) == (4, 4)
    assert each[ORDERS].rows_day == 4 and each["public.items"].failed[-1] == 1
    idle, _ = activity([], NOW, [NOW - timedelta(days=2), NOW - timedelta(hours=1)])
    assert idle.rows[-3] == 0 and idle.rows.count(None) == BUCKETS - 1, "it ran and found nothing"
    assert activity([], NOW) == (replace(whole, **nothing()), {})


def nothing() -> dict[str, Any]:
    none = {"rows": (None,) * BUCKETS, "failed": (0,) * BUCKETS, "swept": (0,) * BUCKETS}
    return {**none, "rows_hour": 0, "rows_day": 0}


def test_runs_say_how_they_ended_and_whom_they_concerned() -> None:
    fine = {"table": ORDERS, "status": "applied", "updated": 2}
    wrong = {"table": "public.items", **failed()}
    done = Report(2, "maintain", "m", NOW, {"done": {ORDERS: ["compact"]}})
    apply, upkeep = runs([report("apply", NOW, fine, wrong), done])
    assert (apply.outcome, apply.tables, apply.failed, apply.rows) == ("failed", 2, 1, 2)
    assert apply.concerned == ("public.items", ORDERS)
    assert apply.error is not None and apply.error["code"] == "apply.row_missing"
    assert (upkeep.outcome, upkeep.concerned) == ("done", (ORDERS,))
    assert [run.kind for run in runs([report("apply", NOW, wrong), done], ORDERS)] == ["maintain"]


def test_a_second_look_reads_no_control_table_again(
    swept: tuple[PipelineConfig, PlatformConfig],
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline, platform = swept
    reports = Reports(catalog, pipeline)
    reports.add("apply", "r1", {"tables": [{"table": ORDERS, "status": "applied", "inserted": 1}]})
    cache = StatusCache(pipeline, platform)
    cache.look()
    read: list[tuple[str, str]] = []
    real = Ledger.read

    def counted(self: Ledger, *arguments: Any, **named: Any) -> Any:
        read.append(self.identifier)
        return real(self, *arguments, **named)

    monkeypatch.setattr(Ledger, "read", counted)
    before = overview(cache, NOW)
    assert read == []
    reports.add("apply", "r2", {"tables": [{"table": ORDERS, **plain(failed())}]})
    Gate(catalog, pipeline, platform.gate).hold([ORDERS], "look first", "ann")
    stop(pipeline, platform, reason="the source moves")
    read.clear()
    now = overview(cache, NOW)
    assert set(read) == {
        (pipeline.control_namespace, name) for name in ("reports", "gate_journal", "pauses")
    }
    assert before.gates == {"open": 2} and now.gates == {"open": 1, "held": 1}
    assert {one.kind for one in now.findings} >= {"held", "failing", "stopped"}


def plain(entry: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(entry, default=str))
    return {key: value for key, value in found.items() if key not in {"run", "at"}}


def test_a_lake_that_was_made_anew_is_not_taken_for_the_old_one(
    swept: tuple[PipelineConfig, PlatformConfig],
) -> None:
    pipeline, platform = swept
    cache = StatusCache(pipeline, platform)
    assert cache.look().tables[ORDERS] is not None
    home = Path(platform.lake.home)
    shutil.move(home, home.with_name("old"))
    assert cache.look().tables[ORDERS] is None
    assert not overview(cache).deployed


def test_a_connection_that_died_is_opened_anew(
    swept: tuple[PipelineConfig, PlatformConfig],
) -> None:
    cache = StatusCache(*swept)
    cache.look()
    engine = cache._catalog.engine  # type: ignore[attr-defined]
    with engine.connect() as connection:
        kept = connection.connection.driver_connection
    kept.close()  # while nobody used it, as a restarted database does
    assert cache.look().tables[ORDERS] is not None


def test_a_lag_is_told_as_exactly_as_it_is_read() -> None:
    told = [steady(lag) for lag in (None, 0.0, 0.456, 7.9, 119.9, 127.0, 3601.0, 4000.0)]
    assert told == [None, 0.0, 0.46, 7.0, 119.0, 120.0, 3600.0, 3960.0]
