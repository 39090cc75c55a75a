"""What schemas look like on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from tidegate.cli import figures
from tidegate.jobs.result import plain

if TYPE_CHECKING:
    from tidegate.control.schema_approval import Approved, LeftHeld
    from tidegate.control.schemas import ShownSchema


def schemas(console: Console, result: Mapping[str, Any]) -> None:
    """One row per schema; changes below each other."""
    grid = figures.grid("table", "", "schema", "first used", "recorded (UTC)", "columns", "changes")
    for row in plain(result)["schemas"]:
        said = list(row["changes"]) or ["the first one" if row["number"] == 1 else "nothing seen"]
        if row["approved_by"]:
            said.append(f"approved by {row['approved_by']}")
        grid.add_row(
            row["table"],
            str(row["number"]),
            row["schema_id"],
            row["first_used"],
            str(row["recorded_at"])[:19],
            str(row["columns"]),
            Text("\n".join(said)),
        )
    console.print(grid)


def schema(console: Console, result: ShownSchema) -> None:
    """One schema, column by column."""
    row = result.schema
    head = f"{row.table}, schema {row.schema_id} ({row.number}), from {row.first_used}"
    console.print(Text(head, "bold"), soft_wrap=True)
    grid = figures.grid("column", "source type", "lake type", "null", "key", "number")
    for column in result.columns:
        grid.add_row(
            Text(column.name),
            Text(column.source_type),
            column.lake_type,
            "yes" if column.nullable else "no",
            "" if column.key is None else str(column.key + 1),
            "" if column.number is None else str(column.number),
        )
    console.print(grid)
    for change in row.changes:
        console.print(Text(f"  {change}"), soft_wrap=True)


def held(console: Console, result: Mapping[str, Any]) -> None:
    """Why tables wait, lake and source side by side."""
    waiting = plain(result)["held"]
    if not waiting:
        console.print("no schema change holds a table")
    for entry in waiting:
        head = f"{entry['table']}, gate {entry['gate']}: schema {entry['schema_id']}"
        console.print(Text(f"{head} from {entry['first_used']}", "bold"), soft_wrap=True)
        for reason in entry["reasons"]:
            console.print(Text(f"  {reason}", "yellow"), soft_wrap=True)
        if entry["registry"]:
            console.print(Text(f"  the schema registry says: {entry['registry']}"), soft_wrap=True)
        grid = figures.grid("column", "lake", "source now")
        for side in entry["sides"]:
            grid.add_row(*(Text(side[name]) for name in ("column", "lake", "source")))
        console.print(grid)
        if entry["left_by"]:
            console.print(Text(f"  {entry['left_by']} leaves it held", "dim"))
        if not entry["approvable"]:
            console.print(Text("  no approval helps: it needs a new lake table", "red"))
        elif entry["sweep"]:
            console.print(Text("  approve it, then sweep the table: the sweep opens its gate"))


def left(console: Console, result: LeftHeld) -> None:
    """What nobody is asked about any more."""
    line = f"{result.table}: schema {result.schema_id}, from {result.from_position} on, stays held"
    console.print(Text(line), soft_wrap=True)


def approved(console: Console, result: Approved) -> None:
    """What was let through, and what the lake will do about it."""
    if result.schema_id is None:
        console.print(f"{result.table}: approved before")
    else:
        verb = "would be approved" if result.dry_run else "approved"
        line = f"{result.table}: schema {result.schema_id} {verb}, from {result.from_position} on"
        console.print(Text(line), soft_wrap=True)
    for statement in result.statements:
        console.print(Text(f"  {statement}"), soft_wrap=True)
    if result.opened:
        console.print(Text(f"opened {', '.join(result.opened)}", "green"))
    if result.sweep:
        line = f"sweep {result.table} now: the lake gets the new key, and the gate opens"
        console.print(Text(line, "yellow"))
    if result.next_held:
        console.print(Text(f"behind it waits: {result.next_held}", "yellow"), soft_wrap=True)
