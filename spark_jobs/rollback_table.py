"""Take one lake table back to an earlier snapshot, its position with it."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.jobs.door import Call, main
from tidegate.names import TableId


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--snapshot-id", type=int, required=True)


def job(call: Call) -> Any:
    from tidegate.jobs.rollback import run_rollback

    (table,) = call.tables or ("",)
    return run_rollback(
        call.spark, call.pipeline, call.platform, TableId.parse(table), call.options.snapshot_id
    )


if __name__ == "__main__":
    main(job, name="rollback_table", options=options)
