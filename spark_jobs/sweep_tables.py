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
    parser.add_argument("--lost-only", action="store_true", help="tables that lost changes")


def job(call: Call) -> Any:
    from tidegate.jobs.recover import run_recover
    from tidegate.jobs.sweep import run_sweep

    where, given = (call.spark, call.pipeline, call.platform), call.options
    how = {"dry_run": given.dry_run, "reason": given.reason, "progress": call.progress}
    if given.lost_only:
        return run_recover(*where, run=call.run, **how)
    return run_sweep(
        *where, tables=call.tables, where=given.where, run=call.run, resume=not given.fresh, **how
    )


if __name__ == "__main__":
    main(job, name="sweep_tables", options=options)
