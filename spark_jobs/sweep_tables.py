"""Re-read tables in full at one cut, audit them on a branch, publish."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.jobs.door import Call, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="do not resume a killed sweep")
    parser.add_argument("--where", help="a key range of one table")
    parser.add_argument("--reason", help="for the gate's timeline")


def job(call: Call) -> Any:
    from tidegate.jobs.sweep import run_sweep

    return run_sweep(
        call.spark,
        call.pipeline,
        call.platform,
        tables=call.tables,
        where=call.options.where,
        run=call.run,
        dry_run=call.options.dry_run,
        resume=not call.options.fresh,
        reason=call.options.reason,
        progress=call.progress,
    )


if __name__ == "__main__":
    main(job, name="sweep_tables", options=options)
