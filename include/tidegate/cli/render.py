"""What results look like on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from tidegate.cli import figures, proofs, render_guard, render_registry, work_report
from tidegate.cli.output import Render
from tidegate.jobs.result import plain

if TYPE_CHECKING:
    from tidegate.control.gates import Gates
    from tidegate.control.records import (
        GateStatus,
        PipelineLag,
        PipelineStatus,
        QueryResult,
        SourceSide,
        TableStatus,
    )
    from tidegate.control.validation import PipelineReport

FAILED = frozenset({"failed"})
FAILED_SWEEP = "sweep failed"


def any_failed(result: Any) -> bool:
    """Whether one of the tables failed; a result that knows it itself is asked."""
    known = getattr(result, "failed", None)
    if isinstance(known, bool):
        return known
    return any(entry.get("status") in FAILED for entry in _entries(result))


def facts(console: Console, result: Any) -> None:
    """One line per fact; lists indented below their name."""
    _mapping(console, _plain_mapping(result), "")


def tables(console: Console, result: Any, *, verbose: bool = False) -> None:
    """A sentence, one row per table, the reasons."""
    entries = _entries(result)
    if not entries:
        facts(console, result)
        return
    data = _plain_mapping(result)
    work_report.show(console, data, entries, verbose)
    sections = {name: part for name, part in data.items() if isinstance(part, Mapping)}
    _mapping(console, _without_noughts(sections), "")


def work(verbose: bool) -> Render:
    """:func:`tables`, with or without what only ``--verbose`` shows."""
    return partial(tables, verbose=verbose)


def validation(console: Console, report: PipelineReport) -> None:
    """Every finding with its fix."""
    for finding in report.findings:
        style = {"error": "bold red", "info": "dim"}.get(finding.severity, "yellow")
        head = Text.assemble((f"{finding.severity:<7}", style), "  ")
        head.append(f"{finding.table}: " if finding.table else "", style="bold")
        head.append(finding.message)
        head.append(f"  [{finding.code}]", style="dim")
        console.print(head)
        if finding.fix:
            for line in finding.fix.splitlines():
                console.print(Text(f"         {line}", "green"))
    checked = "files and source" if report.source_checked else "files only (--offline)"
    count = len(report.tables)
    line = f"{report.pipeline_id}: {count} table{'' if count == 1 else 's'}, transport"
    verdict = Text("ok", "green") if report.ok else Text("not ok", "bold red")
    console.print(Text.assemble(f"{line} {report.transport_mode}, {checked}: ", verdict))


def status(console: Console, result: PipelineStatus) -> None:
    """A pipeline as a whole, then its tables."""
    head = Text.assemble((result.pipeline_id, "bold"), "  ")
    head.append("deployed" if result.deployed else "not deployed")
    if result.running is not None and result.running.stopped:
        word = result.running
        head.append("  stopped", style="bold yellow")
        head.append(f" by {word.actor} {figures.ago(word.since)}: {word.reason}")
    console.print(head)
    if result.captured_through:
        console.print(
            f"captured through  {result.captured_through}  {figures.ago(result.captured_at)}"
        )
    if result.source is not None:
        side = result.source
        if side.reachable:
            console.print(f"source            {_held_for_us(side)}")
            console.print(f"to capture        {figures.human_bytes(result.capture_lag_bytes)}")
        else:
            console.print(Text(f"source            not reachable: {side.problem}", "red"))
    grid = figures.grid("table", "gate", "since", "mode", "rows", "lag", "behind", "snapshot")
    for table in result.tables:
        grid.add_row(
            table.table,
            figures.styled(FAILED_SWEEP if table.gate.failed else table.gate.state),
            figures.ago(table.gate.since),
            table.write_mode,
            figures.cell(table.rows),
            figures.human_bytes(table.lag_bytes),
            figures.human_seconds(table.lag_seconds),
            figures.ago(table.snapshot_at),
        )
    console.print(grid, width=min(console.width, work_report.WIDTH))
    for table in result.tables:
        _table_notes(console, table)
    render_registry.notable(console, result.registry)
    render_guard.notable(console, result.guard)


def _table_notes(console: Console, table: TableStatus) -> None:
    """What does not fit into a row: why it is held, what it needs, what is proven."""
    told = {"table": table.table, "status": table.gate.state, "reason": table.gate.reason}
    work_report.reasons(console, told)
    _behind(console, table.gate)
    if table.needs:
        console.print(Text(f"{table.table}: needs {table.needs}", "yellow"), soft_wrap=True)
    if table.dead_letters:
        letters = f"{table.dead_letters} dead letters (`tidegate dead-letters list`)"
        console.print(Text(f"{table.table}: {letters}", "yellow"), soft_wrap=True)
    if table.adjusted:
        columns = ", ".join(f"{name} ({count})" for name, count in table.adjusted.items())
        changed = f"{table.table}: values that a policy changed: {columns}"
        console.print(Text(changed, "yellow"), soft_wrap=True)
    if table.verified_through is not None:
        console.print(proofs.line(table.table, table.verified_through), soft_wrap=True)


def _held_for_us(side: SourceSide) -> str:
    if not side.by_time:
        retained = figures.human_bytes(side.retained_bytes)
        return f"slot {side.slot} ({side.slot_state}), WAL {retained}"
    if side.expiry_seconds is None:
        return "its log is kept for ever"
    return f"its log is kept for {figures.human_seconds(side.expiry_seconds)}, read or not"


def lag(console: Console, result: PipelineLag) -> None:
    """The change log behind the source, tables behind the change log."""
    said = f"{result.pipeline_id}: {figures.human_bytes(result.capture_bytes)} to capture"
    if result.retained_bytes is not None:
        said += f", {figures.human_bytes(result.retained_bytes)} of WAL retained"
    console.print(said)
    grid = figures.grid("table", "gate", "lag", "behind")
    for table in result.tables:
        cells = figures.human_bytes(table.bytes), figures.human_seconds(table.seconds)
        grid.add_row(table.table, figures.styled(table.state), *cells)
    console.print(grid)
    render_guard.notable(console, result.guard)


def gates(console: Console, result: Gates) -> None:
    """The state of gates, and events if asked for."""
    data = plain(result)
    grid = figures.grid("table", "gate", "since", "by", "lease")
    for gate in data["gates"]:
        lease = gate.get("lease")
        holder = f"{lease['purpose']} {lease['run']}" if lease else ""
        cells = (figures.ago(gate["since"]), gate["actor"] or "", holder)
        state = FAILED_SWEEP if gate.get("failed") else gate["state"]
        grid.add_row(gate["table"], figures.styled(state), *map(Text, cells))
    console.print(grid, width=min(console.width, work_report.WIDTH))
    for gate in data["gates"]:
        work_report.reasons(console, {**gate, "status": gate["state"]})
    for gate in result.gates:
        _behind(console, gate)
    if data["timeline"]:
        _timeline(console, data["timeline"])


def _behind(console: Console, gate: GateStatus) -> None:
    """What a gate's state alone does not say: a sweep that failed, the hold from before."""
    if gate.failed is not None:
        said = f"{gate.table}: the sweep failed {figures.ago(gate.failed.at)}: {gate.failed.reason}"
        console.print(Text(said, "bold red"), soft_wrap=True)
        for doing, command in (
            ("goes on where it ended", gate.failed.resume),
            ("gives it up", gate.failed.abandon),
        ):
            console.print(Text(f"  {command}  # {doing}", "green"), soft_wrap=True)
    if gate.before is not None:
        said = f"{gate.table}: held before, {figures.ago(gate.before.since)}: {gate.before.reason}"
        console.print(Text(said, "yellow"), soft_wrap=True)


def _timeline(console: Console, events: list[Mapping[str, Any]]) -> None:
    grid = figures.grid("at (UTC)", "event", "tables", "run", "outcome", "by", "reason")
    for event in events:
        what = " ".join(filter(None, (event["event"], event["purpose"])))
        texts = (event["run"], event["outcome"], event["actor"], event["reason"])
        tables = ", ".join(event["tables"])
        grid.add_row(event["at"][:19], what, tables, *(Text(text or "") for text in texts))
    console.print()
    console.print(grid)


def snapshots(console: Console, result: Mapping[str, Any]) -> None:
    """One row per snapshot; the current one marked."""
    grid = figures.grid(
        "table", "snapshot", "", "committed (UTC)", "step", "operation", "rows", "position"
    )
    for row in plain(result)["snapshots"]:
        mark = "current" if row["current"] else ("" if row["on_main"] else "branch")
        grid.add_row(
            row["table"],
            str(row["snapshot_id"]),
            Text(mark, "green" if row["current"] else "dim"),
            str(row["committed_at"])[:19],
            row["step"] or "",
            row["operation"],
            figures.cell(row["rows"]),
            row["position"] or "",
        )
    console.print(grid)


def rows(console: Console, result: QueryResult) -> None:
    """The rows of a query."""
    grid = figures.grid(*result.columns)
    for row in result.rows:
        grid.add_row(*(Text(_value(row[name])) for name in result.columns))
    console.print(grid)
    more = "" if result.complete else ", more rows exist (--limit)"
    place = f"snapshot {result.snapshot_id}" if result.snapshot_id else "no snapshot"
    console.print(Text(f"{result.table}, {place}, {len(result.rows)} rows{more}", "dim"))


def run(verbose: bool) -> Render:
    """How a run ended, and each table in its last round."""

    def show(console: Console, result: Any) -> None:
        data = _plain_mapping(result)
        entries = list(work_report.of_run(data))
        work_report.show(console, data, entries, verbose)
        if data["stopped"]:
            how = "in the middle of a step" if data["abandoned"] else "after the step in hand"
            console.print(Text(f"stopped {how}; the next run goes on from here", "yellow"))
        if verbose:
            rest = {name: data[name] for name in ("rounds", "through") if data[name]}
            _mapping(console, rest, "")

    return show


def _plain_mapping(result: Any) -> Mapping[str, Any]:
    data = plain(result)
    return data if isinstance(data, Mapping) else {"result": data}


def _entries(result: Any) -> list[Mapping[str, Any]]:
    found = _plain_mapping(result).get("tables")
    return [entry for entry in found if isinstance(entry, Mapping)] if found else []


def _value(value: Any) -> str:
    return "null" if value is None else str(value)


def _without_noughts(part: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: _without_noughts(value) if isinstance(value, Mapping) else value
        for name, value in part.items()
    }
    return {name: value for name, value in found.items() if value}


def _mapping(console: Console, data: Mapping[str, Any], indent: str) -> None:
    width = max((len(name) for name in data), default=0)
    for name, value in data.items():
        label = f"{indent}{name.replace('_', ' '):<{width}}  "
        if isinstance(value, Mapping):
            console.print(Text(label.rstrip(), "bold"), soft_wrap=True)
            _mapping(console, value, indent + "  ")
        elif isinstance(value, list):
            _items(console, label, value, indent)
        else:
            console.print(
                Text.assemble((label, "bold"), figures.cell(value) or "–"), soft_wrap=True
            )


def _items(console: Console, label: str, items: list[Any], indent: str) -> None:
    if not any(isinstance(item, (Mapping, list)) for item in items):
        console.print(
            Text.assemble((label, "bold"), ", ".join(map(figures.cell, items)) or "–"),
            soft_wrap=True,
        )
        return
    console.print(Text(label.rstrip(), "bold"), soft_wrap=True)
    for item in items:
        if isinstance(item, Mapping):
            parts = (f"{name} {figures.cell(value)}" for name, value in item.items() if value)
            console.print(Text(f"{indent}  " + ", ".join(parts)), soft_wrap=True)
        else:
            console.print(Text(f"{indent}  {figures.cell(item)}"), soft_wrap=True)
