"""The parts of the matrix that have run, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidegate.testing.conformance.cases import PATHS
from tidegate.testing.conformance.results import Part


def write_page(file: Path, parts: Sequence[Part]) -> None:
    """One row per server and write mode, one column per path; failures below."""
    paths = [path for path in PATHS if any(p.path == path for p in parts)]
    readers = sorted({reader for part in parts for reader in part.readers})
    lines = [
        "# Conformance results",
        "",
        "Written by `tidegate conformance --page` (`make conformance`, `make conformance-mysql`)."
        " Cases: `tests/conformance/cases`, explained in its README; types and policies:"
        " [PostgreSQL](types.md), [MySQL and MariaDB](types-mysql.md).",
        "",
        f"A check is one case on one path in one write mode through one reader"
        f" ({', '.join(readers)}). What is not listed has not been run.",
        "",
        "| server | mode | cases | "
        + " | ".join(f"{path}: checks, failed" for path in paths)
        + " | minutes | last run |",
        "|---|---|---|" + "---|" * (len(paths) + 2),
    ]
    rows = sorted({(part.server, part.mode) for part in parts})
    for server, mode in rows:
        own = {p.path: p for p in parts if (p.server, p.mode) == (server, mode)}
        cells = [
            f"{own[path].checks:,}, {len({f.case for f in own[path].failures})}"
            if path in own
            else "–"
            for path in paths
        ]
        minutes = sum(part.seconds for part in own.values()) / 60
        most = max(part.cases for part in own.values())
        lines.append(
            f"| {server} | {mode} | {most} | {' | '.join(cells)} | {minutes:.1f} |"
            f" {max(part.day for part in own.values())} |"
        )
    lines += ["", *_notes(parts)]
    file.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _notes(parts: Sequence[Part]) -> list[str]:
    absent: dict[tuple[str, str], set[str]] = {}
    for part in parts:
        for name, why in part.not_run.items():
            absent.setdefault((part.server, why), set()).add(name)
    notes = [
        f"- {server}, not run: {', '.join(f'`{n}`' for n in sorted(names))}: {why}"
        for (server, why), names in sorted(absent.items())
    ]
    notes += [
        f"- {part.server}, **failed**: `{f.case}` ({f.path}, {f.mode}, {f.reader}): {f.why}"
        for part in parts
        for f in part.failures
    ]
    return notes
