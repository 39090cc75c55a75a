"""Upkeep that is due: compaction, manifests, expiry, orphan files, change-log retention."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.jobs.door import Call, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--force", action="store_true", help="also what is not due")


def job(call: Call) -> Any:
    from tidegate.jobs.maintain import run_maintain

    return run_maintain(
        call.spark,
        call.pipeline,
        call.platform,
        tables=call.tables,
        force=call.options.force,
        dry_run=call.options.dry_run,
        run=call.run,
        progress=call.progress,
    )


if __name__ == "__main__":
    main(job, name="maintain_tables", options=options)
