"""Apply dead letters once more, in order."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.jobs.door import Call, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--code", action="append", default=[], help="only letters with this code")
    parser.add_argument("--event-id", action="append", default=[], help="only this letter")


def job(call: Call) -> Any:
    from tidegate.jobs.redrive import run_redrive
    from tidegate.lake.dead_letter_choice import choose

    return run_redrive(
        call.spark,
        call.pipeline,
        call.platform,
        tables=call.tables,
        choice=choose(call.options.event_id, codes=call.options.code),
        run=call.run,
        dry_run=call.options.dry_run,
        progress=call.progress,
    )


if __name__ == "__main__":
    main(job, name="redrive_dead_letters", options=options)
