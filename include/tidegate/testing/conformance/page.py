"""The results of a run of the suite as a page of Markdown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from tidegate import __version__
from tidegate.testing.conformance.results import Report


def write_page(
    file: Path,
    reports: Sequence[Report],
    *,
    paths: Sequence[str],
    modes: Sequence[str],
    readers: Sequence[str],
) -> None:
    """One row per server; failures below, each with what it says."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    lines = [
        "# Conformance results",
        "",
        f"Written by `tidegate conformance --page` on {today}, Tidegate {__version__}. Cases:"
        " [tests/conformance](../../tests/conformance/README.md); types and policies:"
        " [types](types.md).",
        "",
        f"Paths: {', '.join(paths)}. Write modes: {', '.join(modes)}. Readers:"
        f" {', '.join(readers)}. A check is one case on one path in one mode through one reader.",
        "",
        "| server | cases | checks | cases failed | not run | time |",
        "|---|---|---|---|---|---|",
    ]
    for report in reports:
        failed = len({failure.case for failure in report.failures})
        lines.append(
            f"| {report.server} | {len(report.cases)} | {report.checks} | {failed} |"
            f" {len(report.not_run)} | {report.seconds:.0f} s |"
        )
    lines.append("")
    for report in reports:
        lines += [f"- {report.server}, not run: `{n}`: {w}" for n, w in report.not_run.items()]
    for report in reports:
        lines += [
            f"- {report.server}, **failed**: `{f.case}` ({f.path}, {f.mode}, {f.reader}): {f.why}"
            for f in report.failures
        ]
    file.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
