"""What a schema registry has and says, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from tidegate.cli import figures
from tidegate.jobs.result import plain

if TYPE_CHECKING:
    from tidegate.control.records import RegistryStatus
    from tidegate.jobs.register_schemas import RegisterResult


def registrations(console: Console, result: Mapping[str, Any]) -> None:
    """One row per schema and subject."""
    grid = figures.grid("table", "schema", "subject", "", "id", "version", "registry says")
    for row in plain(result)["registrations"]:
        grid.add_row(row["table"], row["schema_id"], *_facts(row, "; ".join(row["reasons"])))
    console.print(grid)


def registered(console: Console, result: RegisterResult) -> None:
    """What a run told the registry."""
    if result.tables:
        grid = figures.grid("table", "schema", "subject", "", "id", "version", "registry says")
        for row in plain(result)["tables"]:
            grid.add_row(row["table"], row["schema_id"], *_facts(row, row["reason"]))
        console.print(grid)
    elif result.error is None:
        console.print(f"{result.registry} has every schema")
    if result.error is not None:
        console.print(Text(str(result.error), "yellow"), soft_wrap=True)


def notable(console: Console, status: RegistryStatus | None) -> None:
    """A line of ``status``."""
    if status is None:
        return
    counts = f"{status.registered} schemas, {status.pending} pending, {status.refused} refused"
    console.print(f"schema registry   {counts}  {status.url}", soft_wrap=True)
    if status.problem is not None:
        told = f"{status.problem['message']} [{status.problem['code']}] → {status.problem['hint']}"
        console.print(Text(f"  {told}", "yellow"), soft_wrap=True)


def _facts(row: Mapping[str, Any], reasons: str) -> tuple[str | Text, ...]:
    opinion = {None: "", True: "compatible", False: "incompatible"}[row["compatible"]]
    return (
        Text(row["subject"]),
        figures.styled(row["status"].replace("_", " ")),
        figures.cell(row["id"]),
        figures.cell(row["version"]),
        Text(": ".join(part for part in (opinion, reasons) if part)),
    )
