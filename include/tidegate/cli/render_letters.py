"""What dead letters look like on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tidegate.cli import figures

if TYPE_CHECKING:
    from tidegate.control.dead_letters import LetterDetail, Letters


def letters(console: Console, result: Letters) -> None:
    """One row per letter."""
    if not result.letters:
        console.print(f"{result.pipeline_id}: no dead letters")
        return
    grid = figures.grid("table", "key", "op", "role", "event id", "tries", "first seen", "why")
    for row in result.letters:
        grid.add_row(
            row.table,
            Text(key_text(row.key)),
            row.op,
            figures.styled(row.role),
            row.event_id,
            str(row.attempts),
            figures.ago(row.first_seen),
            Text(f"{row.message} [{row.code}]"),
        )
    console.print(grid)
    if result.discarded:
        console.print(Text(f"{len(result.letters)} discarded", "yellow"))


def letter(console: Console, result: LetterDetail) -> None:
    """Everything known about one letter, and the change itself."""
    row = result.letter
    for name, value in (
        ("table", row.table),
        ("key", key_text(row.key)),
        ("op", row.op),
        ("role", row.role),
        ("why", f"{row.message} [{row.code}]"),
        ("position", row.position),
        ("committed", str(result.committed_at or "–")),
        ("first seen", f"{row.first_seen} ({figures.ago(row.first_seen)}), {row.attempts} tries"),
        ("schema", result.schema_id),
    ):
        console.print(Text.assemble((f"{name:<11}", "bold"), value), soft_wrap=True)
    for name, value in result.headers.items():
        shown = value.replace("\n", f"\n{'':<22}")
        console.print(Text.assemble((f"{name:<22}", "dim"), shown), soft_wrap=True)
    names = list(result.after or result.before or {})
    grid = figures.grid("column", "before", "after")
    for name in names:
        after = "(not sent)" if name in result.unchanged else _value(result.after, name)
        grid.add_row(name, Text(_value(result.before, name)), Text(after))
    console.print(grid)


def key_text(key: tuple[str | None, ...]) -> str:
    return ", ".join("null" if part is None else part for part in key) or "–"


def _value(row: dict[str, str | None] | None, name: str) -> str:
    if row is None:
        return ""
    value = row[name]
    return "null" if value is None else value
