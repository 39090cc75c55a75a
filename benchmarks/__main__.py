"""``make bench``: every benchmark, one after the other; ``ARGS="--quick"`` for a look, or names."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from benchmarks import report

FULL: Final[dict[str, tuple[str, list[int], list[str]]]] = {
    "capture": ("capture", [1_000_000], []),
    "sweep": ("sweep", [5_000_000], []),
    "capture-rich": ("capture", [1_000_000], ["rich"]),
    "sweep-rich": ("sweep", [5_000_000], ["rich"]),
    "verify": ("verify", [5_000_000], []),
    "growth": ("growth", [1_000_000, 10_000_000], []),
    "idle": ("idle", [500_000, 5_000_000], []),
    "mysql": ("mysql", [500_000], []),
}
"""Module, sizes, further arguments."""
QUICK_SHARE: Final = 20
DLT: Final = ["dlt[filesystem,pyiceberg,sql-database]==1.31.0", "psycopg2-binary"]
DLT_HOME: Final = Path(__file__).parents[1] / ".tidegate" / "bench-dlt"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FULL)}")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the data, not saved")
    arguments = parser.parse_args()
    names = arguments.names or list(FULL)
    environment = dict(os.environ)
    if {"sweep", "sweep-rich"} & set(names) and (python := peer_python()):
        environment["TIDEGATE_DLT_PYTHON"] = python
    if arguments.quick:
        environment["TIDEGATE_BENCH_UNSAVED"] = "1"
    failed = []
    for number, name in enumerate(names, 1):
        module, full, more = FULL[name]
        sizes = [size // QUICK_SHARE if arguments.quick else size for size in full]
        print(f"[{number}/{len(names)}] {name} {sizes}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.bench_{module}", *map(str, sizes), *more]
        if subprocess.run(command, env=environment, check=False).returncode:
            failed.append(name)
    if not arguments.quick:
        print(f"results: {report.RESULTS}, table: {report.PAGE}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def peer_python() -> str | None:
    """A Python with dlt, in an environment of its own: its requirements differ from Airflow's."""
    python = DLT_HOME / "bin" / "python"
    if python.exists() and _has_dlt(python):
        return str(python)
    print("installing dlt beside (the sweep's peer)", flush=True)
    venv.create(DLT_HOME, with_pip=True)
    done = subprocess.run([str(python), "-m", "pip", "install", "-q", *DLT], check=False)
    if done.returncode:
        print("dlt could not be installed: the sweep is measured against COPY only")
        return None
    return str(python)


def _has_dlt(python: Path) -> bool:
    return subprocess.run([str(python), "-c", "import dlt"], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
