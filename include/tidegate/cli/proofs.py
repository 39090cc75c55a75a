"""Proofs and verdicts on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tidegate.cli import figures

if TYPE_CHECKING:
    from tidegate.control.records import VerifiedThrough
    from tidegate.jobs.verdict import TableVerdict, VerifyResult


def line(table: str, proof: VerifiedThrough) -> Text:
    """``public.orders: verified through …, 100 % of the keys, 3 min ago``"""
    if proof.position is None:
        said = Text(f"{table}: nothing is verified", "yellow")
    else:
        runs = "" if proof.runs == 1 else f" by {proof.runs} runs"
        said = Text(
            f"{table}: verified through {proof.position}, {proof.coverage:g} % of the keys{runs},"
            f" {figures.ago(proof.at)}",
            "green" if proof.coverage == 100 else "",
        )
    if proof.differs:
        said.append("; the last comparison found differences", "bold red")
    if proof.withdrawn is not None:
        said.append(f"; a later proof was withdrawn: {proof.withdrawn}", "yellow")
    return said


def verdicts(console: Console, result: VerifyResult) -> None:
    """Source against lake, where they differ, and what is proven now."""
    grid = figures.grid(
        "table", "source rows", "lake rows", "missing", "extra", "different", "verdict", "reason"
    )
    for table in result.tables:
        numbers = (table.source_rows, table.lake_rows, table.missing, table.extra, table.different)
        grid.add_row(
            table.table,
            *("–" if number is None else figures.cell(number) for number in numbers),
            figures.styled(table.status),
            Text(str(table.error or table.reason or "")),
        )
    console.print(grid)
    for table in result.tables:
        _details(console, table)
    if result.position is not None:
        console.print(Text(f"at position {result.position}", "dim"))


def _details(console: Console, table: TableVerdict) -> None:
    for difference in table.first:
        console.print(Text(f"  {table.table}: {difference}", "red"))
    if table.not_compared:
        left = "; ".join(f"{name} ({why})" for name, why in table.not_compared.items())
        console.print(Text(f"{table.table}: not compared: {left}", "yellow"), soft_wrap=True)
    if table.verified_through is not None:
        said = f"{table.table}: {table.coverage:g} % of the keys verified through"
        console.print(Text(f"{said} {table.verified_through}"), soft_wrap=True)
