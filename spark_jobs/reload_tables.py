"""Read the rows of a time interval again, by key."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.jobs.door import Call, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="start", required=True, help="a date or time, UTC if bare")
    parser.add_argument("--to", dest="end", required=True, help="the first moment after it")
    parser.add_argument("--dry-run", action="store_true")


def job(call: Call) -> Any:
    from tidegate.jobs.moments import moment
    from tidegate.jobs.reload import run_reload

    return run_reload(
        call.spark,
        call.pipeline,
        call.platform,
        start=moment(call.options.start),
        end=moment(call.options.end),
        tables=call.tables,
        dry_run=call.options.dry_run,
        run=call.run,
        progress=call.progress,
    )


if __name__ == "__main__":
    main(job, name="reload_tables", options=options)
