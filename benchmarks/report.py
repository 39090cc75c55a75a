"""Where results go: one JSON file per benchmark, and a table for the documentation."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent
RESULTS: Final = ROOT / "results"
PAGE: Final = ROOT.parent / "docs" / "reference" / "benchmarks.md"
PACKAGES: Final = ("pyspark", "pyiceberg", "pyarrow", "psycopg2-binary", "tidegate")


def machine() -> dict[str, Any]:
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {
        "cores": len(cpus),
        "cpu": cpus[0].split(":")[1].strip() if cpus else platform.processor(),
        "memory_gib": round(int(memory) / 1024**2, 1),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    return done.stdout.strip() or "unknown"


def save(name: str, command: str, measures: list[dict[str, Any]]) -> Path:
    """``measures``: dicts with name, value, unit, target (text or None), note."""
    path = RESULTS / f"{name}.json"
    if os.environ.get("TIDEGATE_BENCH_UNSAVED"):
        for row in measures:
            print(f"  {row['name']}: {row['value']:,.2f} (target {row.get('target', '-')})")
        return path
    RESULTS.mkdir(exist_ok=True)
    body = {
        "benchmark": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "command": command,
        "machine": machine(),
        "measures": measures,
    }
    path.write_text(json.dumps(body, indent=2) + "\n")
    write_page()
    return path


def write_page() -> None:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` from `benchmarks/results/*.json`. Ratios compare two things",
        "measured in the same run on the same machine; a number without its peer says little.",
    ]
    for path in sorted(RESULTS.glob("*.json")):
        body = json.loads(path.read_text())
        facts = body["machine"]
        lines += ["", f"## {body['benchmark']}", "", f"`{body['command']}`, {body['at']}, "]
        lines[-1] += f"commit {body['commit']}; {facts['cores']} cores ({facts['cpu']}), "
        lines[-1] += f"{facts['memory_gib']} GiB; " + ", ".join(
            f"{package} {facts[package]}" for package in PACKAGES
        )
        lines += ["", "| measure | seen | target | note |", "|---|---|---|---|"]
        for row in body["measures"]:
            value = f"{row['value']:,.2f}".rstrip("0").rstrip(".")
            lines.append(
                f"| {row['name']} | {value} {row.get('unit', '')} "
                f"| {row.get('target') or 'reported'} | {row.get('note', '')} |"
            )
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n")
