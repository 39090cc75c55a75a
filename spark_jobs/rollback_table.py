"""Take one lake table back to an earlier snapshot, its position with it."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.jobs.door import Call, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--snapshot-id", type=int, required=True)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--force", action="store_true", help="although the table is held after")


def job(call: Call) -> Any:
    from tidegate.jobs.rollback import run_rollback

    (table,) = call.tables or ("",)
    return run_rollback(
        call.spark,
        call.pipeline,
        call.platform,
        table,
        call.options.snapshot_id,
        force=call.options.force,
        dry_run=call.options.dry_run,
        run=call.run,
    )


if __name__ == "__main__":
    main(job, name="rollback_table", options=options)
