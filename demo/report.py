"""What the demo shows at the end, taken from the lake's own records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.expressions import And, EqualTo, GreaterThan
from rich.console import Console
from rich.table import Table

from demo import places, stack
from demo.runs import Run
from demo.shops import TABLES, Shop
from demo.story import Story
from demo.up import where_to_click
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control import gates, lakehouse, status
from tidegate.control.gates import Moment
from tidegate.control.records import PipelineLag, SnapshotRow
from tidegate.lake import positions
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate_fold import EventKind

TIMELINE_EVENTS: Final = 200
COUNTED: Final = ("inserted", "updated", "deleted")
WIDTH: Final = 120


@dataclass
class Report:
    """Facts, collected once while everything still runs."""

    shop: Shop
    clicks: str
    durations: Mapping[str, float]
    seconds: float
    rows_before: Mapping[str, int]
    rows_after: Mapping[str, int]
    written: Mapping[str, int]
    applied: Mapping[str, Counter[str]]
    timeline: Sequence[Moment]
    lag: PipelineLag
    waiting: Mapping[str, int]
    snapshots: Sequence[SnapshotRow]
    verdict: Mapping[str, Any]
    kept: bool = False

    @classmethod
    def collect(
        cls,
        own: stack.Stack,
        story: Story,
        runs: Sequence[Run],
        rows_before: Mapping[str, int],
        written: Mapping[str, int],
        verified: Run,
    ) -> Report:
        pipeline = load_pipeline(places.PIPELINE_FILE)
        platform = load_platform(places.PLATFORM_FILE)
        return cls(
            shop=own.shop,
            clicks=where_to_click(own),
            durations=story.durations,
            seconds=story.seconds,
            rows_before=rows_before,
            rows_after=own.shop.count(),
            written=written,
            applied=changes_applied(runs),
            timeline=gates.show(pipeline, platform, events=TIMELINE_EVENTS).timeline,
            lag=status.lag(pipeline, platform),
            waiting=changes_waiting(pipeline, platform),
            snapshots=lakehouse.snapshots(pipeline, platform),
            verdict=verified.results.get("verify", {}),
        )

    def named(self, table: str) -> str:
        return f"{self.shop.schema}.{table}"

    @property
    def verdicts(self) -> dict[str, Mapping[str, Any]]:
        return {entry["table"]: entry for entry in self.verdict.get("tables", ())}

    @property
    def equal(self) -> bool:
        names = {self.named(table) for table in TABLES}
        return names == {n for n, entry in self.verdicts.items() if entry["status"] == "equal"}


def changes_applied(runs: Sequence[Run]) -> dict[str, Counter[str]]:
    """Rows inserted, updated and deleted by apply, per table, over all runs."""
    totals: dict[str, Counter[str]] = {}
    for run in runs:
        for label, value in run.results.items():
            if not label.startswith("apply"):
                continue
            for entry in value["tables"]:
                counts = totals.setdefault(entry["table"], Counter())
                counts.update({kind: int(entry.get(kind) or 0) for kind in COUNTED})
    return totals


def changes_waiting(pipeline: PipelineConfig, platform: PlatformConfig) -> dict[str, int]:
    """Per table, rows of the change log after the position the table stands at."""
    catalog = open_catalog(platform, pipeline)
    log = load(catalog, ChangeLog(catalog, pipeline).identifier)
    waiting: dict[str, int] = {}
    for target in pipeline.targets:
        table = load(catalog, target.identifier)
        position = positions.applied(table) if table is not None else None
        if log is not None and position is not None:
            behind = And(EqualTo("table", target.source), GreaterThan("position", position.place))
            waiting[target.source] = log.scan(row_filter=behind).count()
    return waiting


def print_report(report: Report) -> None:
    """To the terminal, and to ``report.txt``."""
    console = Console(record=True, width=WIDTH, highlight=False)
    console.rule("[bold]Tidegate demo")
    console.print(tables(report))
    console.print(lag(report))
    for table in (timeline(report), snapshots(report), steps(report)):
        console.print()
        console.print(table)
    console.print(verdict(report))
    console.print(report.clicks if report.kept else later(report))
    places.REPORT_FILE.write_text(console.export_text())


def tables(report: Report) -> Table:
    title = "Tables: rows, changes applied, changes waiting"
    table = _table(title, "table", "rows before", "rows now", "in the lake", *COUNTED, "waiting")
    for name in TABLES:
        full = report.named(name)
        counts = report.applied.get(full, Counter())
        table.add_row(
            name,
            f"{report.rows_before[name]:,}",
            f"{report.rows_after[name]:,}",
            f"{report.verdicts.get(full, {}).get('lake_rows', 0):,}",
            *(f"{counts[kind]:,}" for kind in COUNTED),
            f"{report.waiting.get(full, 0):,}",
        )
    return table


def lag(report: Report) -> str:
    written = ", ".join(f"{n:,} {kind}" for kind, n in report.written.items())
    behind, kept = report.lag.capture_bytes or 0, report.lag.retained_bytes or 0
    return f"The writer did {written}.\nLag: {report.shop.lag(behind, kept)}."


def timeline(report: Report) -> Table:
    table = _table("Gate timeline (from the journal)", "time", "seconds", "what", "tables", "run")
    for began, seconds, what, names, run in spans(report.timeline):
        tables = "all" if len(names) == len(TABLES) else ", ".join(names)
        table.add_row(began, seconds, what, tables.replace(report.named(""), ""), run or "")
    return table


def spans(
    moments: Sequence[Moment],
) -> Iterator[tuple[str, str, str, tuple[str, ...], str | None]]:
    """Events as (time, duration, what, tables, run); a lease and its release are one."""
    for place, moment in enumerate(moments):
        what = " ".join(part for part in (moment.event, moment.outcome) if part)
        ended = None
        if moment.event == EventKind.RELEASE:
            continue
        if moment.event == EventKind.ACQUIRE:
            what = f"{moment.purpose} at work"
            later = moments[place + 1 :]
            ended = next((m for m in later if _ends(m, moment)), None)
        elif moment.event == EventKind.SWEEP:
            what = "gate closed: sweeping"
        elif moment.event == EventKind.END:
            what = f"gate open: sweep {moment.outcome}"
        lasted = f"{(ended.at - moment.at).total_seconds():.0f}" if ended else ""
        yield f"{moment.at:%H:%M:%S}", lasted, what, moment.tables, moment.run


def _ends(later: Moment, begun: Moment) -> bool:
    same = (later.run, later.tables) == (begun.run, begun.tables)
    return same and later.event == EventKind.RELEASE


def snapshots(report: Report) -> Table:
    columns = ("table", "snapshot", "time", "step", "rows", "position")
    table = _table("Snapshots, each with the position it stands at", *columns)
    for row in report.snapshots:
        if row.on_main:
            name = row.table.removeprefix(report.named("")) + (" ◀" if row.current else "")
            rows = "" if row.rows is None else f"{row.rows:,}"
            place = (row.position or "").rpartition("/")[2] if row.position else ""
            step = row.step or row.operation
            table.add_row(
                name, str(row.snapshot_id), f"{row.committed_at:%H:%M:%S}", step, rows, place
            )
    return table


def steps(report: Report) -> Table:
    table = _table(f"Steps: {report.seconds:.0f} s in all", "step", "seconds")
    for title, seconds in report.durations.items():
        table.add_row(title, f"{seconds:.1f}")
    return table


def verdict(report: Report) -> str:
    position = report.verdict.get("position", "?")
    if report.equal:
        return f"\n[bold green]EQUAL[/] source and lake hold the same rows at {position}"
    different = [name for name, entry in report.verdicts.items() if entry["status"] != "equal"]
    return f"\n[bold red]NOT EQUAL[/] at {position}: {', '.join(different) or 'no verdict'}"


def later(report: Report) -> str:
    return f"`make up` starts the same stack again with these runs and tables:\n{report.clicks}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False)
    for column in columns:
        numeric = column in {
            "rows",
            "seconds",
            "rows before",
            "rows now",
            "in the lake",
            "waiting",
            *COUNTED,
        }
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    return table
