"""Hours in minutes: writers never rest, jobs are killed, tables are swept; then everything is
compared (``make soak MINUTES=20``).

Every job is a process of its own (the CLI), as in production. About a third of them get SIGKILL at
a random moment. At the end the writers stop, the log is drained, and ``tidegate verify`` compares
every row. The figures go to docs/reference/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks import report
from benchmarks.soak_writer import SCHEMA, TABLES, Writer
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER, PostgresServer, running

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "reliability.md"
TIDEGATE: Final = [str(Path(sys.executable).with_name("tidegate"))]
KILLED: Final = 1 / 3
UNKNOWN_LIFE: Final = 10.0
"""Seconds in which a job that is to die does, until one of its kind has shown how long it takes."""


@dataclass
class Soak:
    """The jobs of one soak."""

    folder: Path
    dice: random.Random
    runs: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    took: dict[str, float] = field(default_factory=dict)
    """Seconds of the last job of a kind that lived: the next that is to die does within them."""
    last: dict[str, Any] = field(default_factory=dict)
    """What the last job that lived said."""

    def job(self, verb: str, *options: str, may_die: bool = True) -> None:
        """Run a command, or most of one."""
        dies = may_die and self.dice.random() < KILLED
        life = self.dice.uniform(1, max(2, self.took.get(verb, UNKNOWN_LIFE)))
        began = time.monotonic()
        with (self.folder / "jobs.log").open("ab") as log:
            process = subprocess.Popen(
                [*TIDEGATE, *verb.split(), "pipeline.yaml", "--json", *options],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            self.runs[verb] += 1
            try:
                out, _ = process.communicate(timeout=life if dies else None)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # with its JVM, as the OOM killer would
                process.communicate()
                self.killed[verb] += 1
                print(f"  {verb}: killed", flush=True)
                return
        self.took[verb] = time.monotonic() - began
        answer = json.loads(out or b"{}")
        ok = answer.get("ok", False)
        code = (answer.get("error") or {}).get("code", "")
        print(f"  {verb} {' '.join(options)}: {'done' if ok else code or 'failed'}", flush=True)
        if not ok:
            self.refused[f"{verb} {code or 'failed for a table'}"] += 1
        self.last = answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--unsaved", action="store_true", help="do not write the page")
    arguments = parser.parse_args()
    with running(16) as server, tempfile.TemporaryDirectory(prefix="tidegate-soak-") as home:
        soak = Soak(Path(home), random.Random(arguments.seed))
        prepare(server, soak.folder)
        stop = threading.Event()
        seeds = range(arguments.seed, arguments.seed + arguments.writers)
        writers = [Writer(server.dsn("soak"), seed, stop) for seed in seeds]
        soak.job("deploy", may_die=False)
        for writer in writers:
            writer.start()
        try:
            act(soak, arguments.minutes)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        written = sum((writer.transactions for writer in writers), Counter[str]())
        settle(soak)
        verdict = soak.last
        failed = [str(writer.error) for writer in writers if writer.error]
        compared = [table["status"] for table in (verdict.get("result") or {}).get("tables", ())]
        equal = compared == ["equal"] * len(TABLES) and not failed
        lines = figures(arguments, soak, written, verdict, equal)
        print("\n".join([*lines, *failed]))
        if not arguments.unsaved:
            write_page(lines)
        if not equal:
            (Path.cwd() / "soak-jobs.log").write_bytes((soak.folder / "jobs.log").read_bytes())
    return 0 if equal else 1


def prepare(server: PostgresServer, folder: Path) -> None:
    server.create_database("soak")
    with server.connect("soak") as connection:
        connection.execute(SCHEMA.encode())
    pipeline = {
        "pipeline_id": "soak",
        "source": {
            "host": "127.0.0.1",
            "port": server.port,
            "database": "soak",
            "username": SUPERUSER,
            "password": PASSWORD,
            "tables": [f"public.{table}" for table in TABLES],
        },
    }
    platform = {"lake": {"home": str(folder / "home")}, "gate": {"lease_seconds": 10}}
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(pipeline))
    (folder / "platform.yaml").write_text(yaml.safe_dump(platform))


def act(soak: Soak, minutes: float) -> None:
    """Jobs at random until the time is over."""
    end = time.monotonic() + minutes * 60
    while time.monotonic() < end:
        left = (end - time.monotonic()) / 60
        print(f"{left:.1f} minutes left, {sum(soak.killed.values())} jobs killed", flush=True)
        match soak.dice.choices(["run", "sweep", "maintain"], [6, 2, 1])[0]:
            case "run":
                soak.job("run", "--once")
            case "sweep":
                soak.job("sweep", "--table", f"public.{soak.dice.choice(TABLES)}")
            case "maintain":
                soak.job("maintain", "--force")


def settle(soak: Soak) -> None:
    """Finish sweeps that were left half done, drain the log, compare. Nothing is read anew that
    was not being read: a sweep would hide what applies did wrong."""
    soak.job("gate show", may_die=False)
    for gate in soak.last["result"]["gates"]:
        if gate["state"] == "sweeping":
            soak.job("sweep", "--table", gate["table"], may_die=False)
    soak.job("run", "--once", may_die=False)
    soak.job("verify", may_die=False)


def figures(
    arguments: argparse.Namespace,
    soak: Soak,
    written: Counter[str],
    verdict: dict[str, Any],
    equal: bool,
) -> list[str]:
    tables = (verdict.get("result") or {}).get("tables") or []
    rows = sum(int(table.get("source_rows") or 0) for table in tables)
    facts = report.machine()

    def told(counts: Counter[str]) -> str:
        return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"

    return [
        f"- {datetime.now(UTC):%Y-%m-%d}, commit {report.commit()}, {facts['cores']} cores,"
        f" `python -m benchmarks.soak --minutes {arguments.minutes:g} --writers"
        f" {arguments.writers} --seed {arguments.seed}`",
        f"  - transactions written: {sum(written.values()):,} ({told(written)})",
        f"  - jobs started: {told(soak.runs)}; killed by SIGKILL: {told(soak.killed)}",
        f"  - jobs that said they could not: {told(soak.refused)}",
        f"  - compared afterwards, row by row: {rows:,} rows of {len(tables)} tables:"
        f" **{'equal' if equal else 'NOT EQUAL'}**",
    ]


def write_page(lines: list[str]) -> None:
    head = [
        "# Reliability",
        "",
        "What was seen when writers never rested, jobs were killed at random moments and tables",
        "were swept in between (`make soak`, [the script](../../benchmarks/soak.py)), newest",
        "first. The [fault tests](../../tests/faults) kill at every durable step besides.",
        "",
    ]
    known = PAGE.read_text().splitlines()[len(head) :] if PAGE.exists() else []
    PAGE.write_text("\n".join([*head, *lines, *known]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
