"""What results look like on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.jobs.lines import reason
from tidegate.jobs.result import plain

if TYPE_CHECKING:
    from tidegate.control.records import PipelineLag, PipelineStatus, QueryResult
    from tidegate.control.validation import PipelineReport

STATE_STYLES = {
    "open": "green",
    "sweeping": "cyan",
    "held": "yellow",
    "applied": "green",
    "published": "green",
    "unchanged": "dim",
    "waiting": "yellow",
    "failed": "bold red",
    "missing": "yellow",
}
FAILED = frozenset({"failed"})


def any_failed(result: Any) -> bool:
    """Whether one of the tables failed."""
    return any(entry.get("status") in FAILED for entry in _entries(result))


def all_equal(result: Any) -> bool:
    """Whether every table of a verification is equal."""
    return all(entry.get("equal") for entry in _entries(result))


def facts(console: Console, result: Any) -> None:
    """One line per fact; lists indented below their name."""
    _mapping(console, _plain_mapping(result), "")


def tables(console: Console, result: Any) -> None:
    """One row per table: status, numbers, reason."""
    entries = _entries(result)
    if not entries:
        facts(console, result)
        return
    hidden = {"table", "status", "error", "reason", "hint", "message"}
    columns = [name for name in _union(entries) if name not in hidden and _speaks(entries, name)]
    grid = _grid("table", "status", *(name.replace("_", " ") for name in columns), "reason")
    for entry in entries:
        status = str(entry.get("status") or "")
        cells = [_cell(entry.get(name)) for name in columns]
        grid.add_row(str(entry.get("table")), _styled(status), *cells, Text(reason(entry)))
    console.print(grid)


def verdicts(console: Console, result: Any) -> None:
    """Source against lake."""
    data = _plain_mapping(result)
    grid = _grid("table", "source rows", "lake rows", "missing", "extra", "different", "verdict")
    for entry in _entries(result):
        equal = bool(entry.get("equal"))
        verdict = Text("equal" if equal else "NOT EQUAL", "green" if equal else "bold red")
        numbers = ("source_rows", "lake_rows", "missing", "extra", "different")
        grid.add_row(
            str(entry.get("table")), *(_cell(entry.get(name)) for name in numbers), verdict
        )
    console.print(grid)
    if data.get("position"):
        console.print(Text(f"at position {data['position']}", "dim"))


def validation(console: Console, report: PipelineReport) -> None:
    """Every finding with its fix."""
    for finding in report.findings:
        style = "bold red" if finding.severity == "error" else "yellow"
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
    console.print(head)
    if result.captured_through:
        console.print(f"captured through  {result.captured_through}  {ago(result.captured_at)}")
    if result.source is not None:
        side = result.source
        if side.reachable:
            retained = human_bytes(side.retained_bytes)
            console.print(f"source            slot {side.slot} ({side.slot_state}), WAL {retained}")
            console.print(f"to capture        {human_bytes(result.capture_lag_bytes)}")
        else:
            console.print(Text(f"source            not reachable: {side.problem}", "red"))
    grid = _grid("table", "gate", "since", "mode", "rows", "lag", "behind", "snapshot", "needs")
    for table in result.tables:
        grid.add_row(
            table.table,
            _styled(table.gate.state),
            ago(table.gate.since),
            table.write_mode,
            _cell(table.rows),
            human_bytes(table.lag_bytes),
            human_seconds(table.lag_seconds),
            ago(table.snapshot_at),
            Text(table.needs or table.gate.reason or "", "yellow"),
        )
    console.print(grid)


def lag(console: Console, result: PipelineLag) -> None:
    """The change log behind the source, tables behind the change log."""
    console.print(
        f"{result.pipeline_id}: {human_bytes(result.capture_bytes)} to capture,"
        f" {human_bytes(result.retained_bytes)} of WAL retained"
    )
    grid = _grid("table", "gate", "lag", "behind")
    for table in result.tables:
        cells = human_bytes(table.bytes), human_seconds(table.seconds)
        grid.add_row(table.table, _styled(table.state), *cells)
    console.print(grid)


def gates(console: Console, result: Mapping[str, Any]) -> None:
    """The state of gates, and events if asked for."""
    data = plain(result)
    grid = _grid("table", "gate", "since", "by", "lease", "reason")
    for gate in data["gates"]:
        lease = gate.get("lease")
        holder = f"{lease['purpose']} {lease['run']}" if lease else ""
        cells = (ago(gate["since"]), gate["actor"] or "", holder, gate["reason"] or "")
        grid.add_row(gate["table"], _styled(gate["state"]), *map(Text, cells))
    console.print(grid)
    for event in data.get("timeline") or ():
        console.print(Text("  ".join(_cell(value) for value in event.values() if value)))


def snapshots(console: Console, result: Mapping[str, Any]) -> None:
    """One row per snapshot; the current one marked."""
    grid = _grid(
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
            _cell(row["rows"]),
            row["position"] or "",
        )
    console.print(grid)


def rows(console: Console, result: QueryResult) -> None:
    """The rows of a query."""
    grid = _grid(*result.columns)
    for row in result.rows:
        grid.add_row(*(Text(_value(row[name])) for name in result.columns))
    console.print(grid)
    more = "" if result.complete else ", more rows exist (--limit)"
    place = f"snapshot {result.snapshot_id}" if result.snapshot_id else "no snapshot"
    console.print(Text(f"{result.table}, {place}, {len(result.rows)} rows{more}", "dim"))


def run(console: Console, result: Any) -> None:
    """How a run ended."""
    facts(console, result)


def human_bytes(count: int | None) -> str:
    """``12.3 MiB``; a dash for the unknown."""
    if count is None:
        return "–"
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def human_seconds(seconds: float | None) -> str:
    """``3 min``; a dash for the unknown."""
    if seconds is None:
        return "–"
    for limit, size, unit in ((90, 1, "s"), (5400, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def ago(moment: datetime | str | None) -> str:
    """``3 min ago``."""
    if moment is None:
        return ""
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return f"{human_seconds(max(0.0, (datetime.now(UTC) - at).total_seconds()))} ago"


def _grid(*columns: str) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold dim")
    for column in columns:
        grid.add_column(column, overflow="fold")
    return grid


def _styled(state: str) -> Text:
    return Text(state, STATE_STYLES.get(state, ""))


def _plain_mapping(result: Any) -> Mapping[str, Any]:
    data = plain(result)
    return data if isinstance(data, Mapping) else {"result": data}


def _entries(result: Any) -> list[Mapping[str, Any]]:
    found = _plain_mapping(result).get("tables")
    return [entry for entry in found if isinstance(entry, Mapping)] if found else []


def _union(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for entry in entries for name in entry))


def _speaks(entries: Iterable[Mapping[str, Any]], name: str) -> bool:
    return any(isinstance(entry.get(name), (int, float, str)) and entry[name] for entry in entries)


def _cell(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f") if abs(value) < 10**12 else str(value)
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _value(value: Any) -> str:
    return "null" if value is None else str(value)


def _mapping(console: Console, data: Mapping[str, Any], indent: str) -> None:
    width = max((len(name) for name in data), default=0)
    for name, value in data.items():
        label = f"{indent}{name.replace('_', ' '):<{width}}  "
        if isinstance(value, Mapping):
            console.print(Text(label.rstrip(), "bold"))
            _mapping(console, value, indent + "  ")
        elif isinstance(value, list):
            _items(console, label, value, indent)
        else:
            console.print(Text.assemble((label, "bold"), _cell(value) or "–"))


def _items(console: Console, label: str, items: list[Any], indent: str) -> None:
    if not any(isinstance(item, (Mapping, list)) for item in items):
        console.print(Text.assemble((label, "bold"), ", ".join(map(_cell, items)) or "–"))
        return
    console.print(Text(label.rstrip(), "bold"))
    for item in items:
        if isinstance(item, Mapping):
            parts = (f"{name} {_cell(value)}" for name, value in item.items() if value)
            console.print(Text(f"{indent}  " + ", ".join(parts)))
        else:
            console.print(Text(f"{indent}  {_cell(item)}"))
