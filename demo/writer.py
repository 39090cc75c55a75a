"""A shop at work: orders placed, paid, shipped, cancelled, deleted; prices and keys changed.

A process of its own, one connection, one transaction at a time at a steady rate, until SIGTERM.
What it wrote is in the statistics file.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

from demo.shops import KINDS
from demo.shops.work import Work


def worker(source: str) -> Work:
    dice = random.Random(7)
    if source == "mysql":
        from demo.shops.mysql_work import MysqlWork

        return MysqlWork(dice)
    from demo.shops.postgres_work import PostgresWork

    return PostgresWork(dice)


def write_until(stop: threading.Event, work: Work, per_second: float, stats: Path) -> None:
    due = time.monotonic()
    while not stop.is_set():
        work.one()
        if work.counts["transactions"] % 20 == 1:
            save(stats, work.counts)
        due = max(due + 1 / per_second, time.monotonic() - 1)
        stop.wait(max(0.0, due - time.monotonic()))
    save(stats, work.counts)


def save(stats: Path, counts: Counter[str]) -> None:
    staging = stats.with_suffix(".new")
    staging.write_text(json.dumps(counts))
    staging.replace(stats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", choices=KINDS, default=KINDS[0])
    parser.add_argument("--per-second", type=float, default=30.0, help="transactions a second")
    parser.add_argument("--stats", type=Path, required=True, help="where to note what was written")
    arguments = parser.parse_args()
    stop = threading.Event()
    for wanted in (signal.SIGTERM, signal.SIGINT):
        signal.signal(wanted, lambda *_: stop.set())
    write_until(stop, worker(arguments.source), arguments.per_second, arguments.stats)


if __name__ == "__main__":
    main()
