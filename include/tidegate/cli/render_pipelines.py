"""Pipelines as a whole, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from tidegate.cli import figures, render
from tidegate.cli.output import Render
from tidegate.cli.work_report import WIDTH

RUNNING: Final = "running"
"""As records spell a pipeline that nobody stopped."""

if TYPE_CHECKING:
    from tidegate.control.doctor import Diagnosis
    from tidegate.control.health import Health
    from tidegate.control.offsets import Offsets
    from tidegate.control.pipelines import Created, PipelineDescription, PipelineSummary
    from tidegate.control.running import Running
    from tidegate.jobs.deploy import DeployResult


def created(console: Console, result: Created) -> None:
    """Where the file is now, and what to do next."""
    for finding in result.findings:
        console.print(Text(f"{finding.severity}  {finding.message}", "yellow"), soft_wrap=True)
    console.print(Text.assemble((result.status, "green"), f"  {result.pipeline_id}  {result.file}"))
    if result.status == "created":
        console.print(Text(f"next     tidegate deploy {result.pipeline_id}", "dim"))


def deployed(count: int) -> Render:
    """How many of ``count`` tables are deployed; then what is held, one finding a line."""

    def show(console: Console, result: DeployResult) -> None:
        said = f"{result.status}, {count - len(result.held)} of {count} tables"
        said += (
            f"; {len(result.held)} held: the source is not ready for them" if result.held else ""
        )
        console.print(Text(said, "bold"), soft_wrap=True)
        for table in result.held:
            for reason in table.reasons:
                line = Text.assemble(
                    ("held  ", "bold yellow"), (f"{table.table}: ", "bold"), reason
                )
                console.print(line, soft_wrap=True)
        for warning in result.warnings:
            console.print(Text.assemble(("warn  ", "yellow"), warning), soft_wrap=True)
        done = "do" if result.status == "planned" else "done"
        for action in result.actions:
            console.print(Text.assemble((f"{done:<6}", "dim"), action), soft_wrap=True)
        for name, value in {**result.objects, "start": result.start}.items():
            if value:
                console.print(Text(f"{name:<12}{value}", "dim"), soft_wrap=True)

    return show


def listed(console: Console, result: Mapping[str, Any]) -> None:
    """One row per file."""
    grid = figures.grid("pipeline", "state", "deployed", "source", "tables", "owner", "file")
    for row in result["pipelines"]:
        source = f"{row.source_type} {row.database}" if row.source_type else ""
        grid.add_row(
            row.pipeline_id,
            _activity(row),
            figures.cell(row.deployed),
            source,
            figures.cell(row.tables),
            row.owner or "",
            row.file,
        )
    console.print(grid)
    for row in result["pipelines"]:
        if row.problem:
            console.print(Text(f"{row.file}: {row.problem}", "red"), soft_wrap=True)
    if not result["pipelines"]:
        console.print(Text(f"no pipeline in {result['folder']}: `tidegate init`", "dim"))


def _activity(row: PipelineSummary) -> Text:
    """What is going on: nobody works because nobody has stopped it."""
    if row.state != RUNNING:
        return figures.styled(row.state)
    if row.at_work:
        return Text(f"at work: {', '.join(row.at_work)}", "green")
    return Text("ready" if row.deployed else "not deployed", "" if row.deployed else "dim")


def _may_work(state: str) -> Text:
    return Text("not stopped") if state == RUNNING else figures.styled(state)


def running(console: Console, result: Running) -> None:
    """Stopped or not, by whom."""
    told = Text.assemble((result.pipeline_id, "bold"), "  ")
    told.append_text(
        Text("started", "green")
        if result.changed and not result.stopped
        else _may_work(result.state)
    )
    if result.since is not None:
        told.append(f"  by {result.actor} ({result.surface}), {figures.ago(result.since)}")
        told.append(f": {result.reason}")
    console.print(told, soft_wrap=True)
    if not result.changed:
        console.print(Text("it was so already: nothing changed", "dim"))
    elif result.stopped:
        kept = "the source keeps its WAL until `tidegate start`; watch `tidegate guard`"
        console.print(Text(kept, "yellow"))


def described(console: Console, result: PipelineDescription) -> None:
    """What the file says, then the tables. Positions: `tidegate offsets`."""
    running(console, result.running) if result.running.since else console.print(
        Text.assemble((result.pipeline_id, "bold"), "  ", _may_work(result.running.state))
    )
    where = f"{result.username}@{result.host}:{result.port}/{result.database}"
    if result.connection_id:
        where = f"connection {result.connection_id}, database {result.database}"
    when = (f"{name} {at or 'by hand'}" for name, at in result.schedules.items())
    facts = {
        "file": result.file,
        "deployed": result.deployed,
        "source": f"{result.source_type}  {where}",
        "slot": result.slot,
        "publication": result.publication,
        "lake": result.namespace,
        "control": result.control_namespace,
        "sinks": ", ".join(result.sinks) or "the lake",
        "schedules": ", ".join(when),
        "owner": result.owner,
    }
    render.facts(console, facts)
    grid = figures.grid("table", "lake table", "mode", "gate", "needs")
    states = {table.table: table for table in result.status.tables}
    for table in result.tables:
        now = states[table.table]
        mode = f"{table.write_mode}{', soft delete' if table.soft_delete else ''}"
        grid.add_row(
            table.table,
            table.lake_table,
            mode,
            figures.styled(now.gate.state),
            Text(now.needs or "", "yellow"),
        )
    console.print(grid, width=min(console.width, WIDTH))


def offsets(console: Console, result: Offsets) -> None:
    """Where capture and each table stand."""
    through = result.captured_through or "not deployed"
    console.print(f"captured through  {through}  {figures.ago(result.captured_at)}")
    grid = figures.grid("table", "position", "LSN", "lag", "gate", "lowest", "needs")
    for table in result.tables:
        grid.add_row(
            table.table,
            table.position or "",
            table.lsn or "",
            figures.human_bytes(table.lag_bytes),
            figures.styled(table.gate),
            table.lowest or "",
            Text(table.needs or "", "yellow"),
        )
    console.print(grid)


def health(console: Console, result: Health) -> None:
    """One line per part."""
    grid = figures.grid("part", "status", "detail", "do")
    for part in result.components:
        cells = (Text(part.detail), Text(part.hint or "", "green"))
        grid.add_row(part.name, figures.styled(part.status), *cells)
    console.print(grid)
    name = result.pipeline_id or "platform"
    console.print(Text.assemble(f"{name}: ", figures.styled(result.status)))


def diagnosis(console: Console, result: Diagnosis) -> None:
    """One line per check, the fix below what needs one."""
    for check in result.checks:
        line = Text.assemble(f"{check.name:<8}  ", figures.styled(f"{check.status:<7}"), "  ")
        line.append(check.detail)
        console.print(line, soft_wrap=True)
        for fix in (check.fix or "").splitlines():
            console.print(Text(f"{'':19}{fix}", "green"), soft_wrap=True)
