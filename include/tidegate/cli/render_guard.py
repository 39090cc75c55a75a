"""The source guard's findings on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tidegate.cli import figures

if TYPE_CHECKING:
    from tidegate.transports.guard import Guard


def whole(console: Console, guard: Guard) -> None:
    """Every finding, and the verdict over all."""
    grid = figures.grid("check", "verdict", "what", "next step")
    for finding in guard.findings:
        verdict = figures.styled(finding.verdict.value)
        grid.add_row(finding.check, verdict, Text(finding.says), Text(finding.next or ""))
    console.print(grid)
    console.print(Text.assemble("guard: ", figures.styled(guard.verdict.value)))


def notable(console: Console, guard: Guard | None) -> None:
    """Below a status: only what is not ok."""
    for finding in guard.findings if guard else ():
        if finding.verdict != "ok":
            head = Text.assemble(figures.styled(finding.verdict.value), f"  {finding.says}")
            console.print(head, soft_wrap=True)
            console.print(Text(f"      {finding.next}", "green"), soft_wrap=True)
