"""What the demo shows at the end, taken from the lake's own records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from demo import places, shop, stack
from demo.runs import Run
from demo.story import Story
from demo.up import where_to_click
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.control import gates, lakehouse, status
from tidegate.control.gates import Moment
from tidegate.control.records import PipelineLag, SnapshotRow

TIMELINE_EVENTS: Final = 200
COUNTED: Final = ("inserted", "updated", "deleted")
WIDTH: Final = 120


@dataclass
class Report:
    """Facts, collected once while everything still runs."""

    clicks: str
    durations: Mapping[str, float]
    seconds: float
    rows_before: Mapping[str, int]
    rows_after: Mapping[str, int]
    written: Mapping[str, int]
    applied: Mapping[str, Counter[str]]
    timeline: Sequence[Moment]
    lag: PipelineLag
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
            clicks=where_to_click(own),
            durations=story.durations,
            seconds=story.seconds,
            rows_before=rows_before,
            rows_after=shop.count(own.server),
            written=written,
            applied=changes_applied(runs),
            timeline=gates.show(pipeline, platform, events=TIMELINE_EVENTS).timeline,
            lag=status.lag(pipeline, platform),
            snapshots=lakehouse.snapshots(pipeline, platform),
            verdict=verified.results.get("verify", {}),
        )

    @property
    def verdicts(self) -> dict[str, Mapping[str, Any]]:
        return {entry["table"]: entry for entry in self.verdict.get("tables", ())}

    @property
    def equal(self) -> bool:
        names = {f"public.{table}" for table in shop.TABLES}
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


def print_report(report: Report) -> None:
    """To the terminal, and to ``report.txt``."""
    console = Console(record=True, width=WIDTH, highlight=False)
    console.rule("[bold]Tidegate demo")
    for table in (tables(report), timeline(report), snapshots(report), steps(report)):
        console.print(table)
    console.print(verdict(report))
    console.print(report.clicks if report.kept else later(report))
    places.REPORT_FILE.write_text(console.export_text())


def tables(report: Report) -> Table:
    title = "Tables: rows, changes applied, lag"
    table = _table(title, "table", "rows before", "rows now", "in the lake", *COUNTED, "behind")
    lag = {entry.table: entry for entry in report.lag.tables}
    for name in shop.TABLES:
        full = f"public.{name}"
        counts = report.applied.get(full, Counter())
        behind = lag[full].bytes if full in lag else None
        table.add_row(
            name,
            f"{report.rows_before[name]:,}",
            f"{report.rows_after[name]:,}",
            f"{report.verdicts.get(full, {}).get('lake_rows', 0):,}",
            *(f"{counts[kind]:,}" for kind in COUNTED),
            "–" if behind is None else f"{behind:,} bytes",
        )
    table.caption = "the writer: " + ", ".join(
        f"{n:,} {kind}" for kind, n in report.written.items()
    )
    return table


def timeline(report: Report) -> Table:
    table = _table("Gate timeline (from the journal)", "time", "event", "tables", "by")
    for moment in report.timeline:
        event = " ".join(part for part in (moment.event, moment.purpose, moment.outcome) if part)
        names = ", ".join(name.removeprefix("public.") for name in moment.tables)
        who = moment.reason or moment.run or moment.actor or ""
        table.add_row(f"{moment.at:%H:%M:%S}", event, names, who)
    return table


def snapshots(report: Report) -> Table:
    columns = ("table", "snapshot", "time", "step", "rows", "position")
    table = _table("Snapshots, each with the position it stands at", *columns)
    for row in report.snapshots:
        if row.on_main:
            name = row.table.removeprefix("public.") + (" ◀" if row.current else "")
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
        numeric = column in {"rows", "seconds", "rows before", "rows now", "in the lake", *COUNTED}
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    return table
