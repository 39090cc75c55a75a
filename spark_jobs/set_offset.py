"""Set one table's position: back to replay, forward to skip."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.jobs.door import Call, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--position", required=True, help="a position, or an LSN")
    parser.add_argument("--expect", help="where the table must still stand")
    parser.add_argument("--skip", action="store_true", help="changes may be left out for good")
    parser.add_argument("--reason", help="for the audit trail")
    parser.add_argument("--dry-run", action="store_true")


def job(call: Call) -> Any:
    from tidegate.jobs.set_offset import run_set_offset

    (table,) = call.tables or ("",)
    return run_set_offset(
        call.spark,
        call.pipeline,
        call.platform,
        table,
        call.options.position,
        skip=call.options.skip,
        reason=call.options.reason,
        expect=call.options.expect,
        dry_run=call.options.dry_run,
        run=call.run,
    )


if __name__ == "__main__":
    main(job, name="set_offset", options=options)
