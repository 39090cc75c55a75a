"""Compare source and lake at one stated position; mend what differs if asked to."""

from __future__ import annotations

import argparse
from typing import Any

from tidegate.config.verify import extent
from tidegate.jobs.door import Call, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sample", help="as 5%%, or changed; else the pipeline's own")
    parser.add_argument("--repair", action="store_true")
    parser.add_argument("--dry-run", action="store_true")


def job(call: Call) -> Any:
    from tidegate.jobs.verify import run_verify

    sample = call.options.sample
    return run_verify(
        call.spark,
        call.pipeline,
        call.platform,
        tables=call.tables,
        extent=extent(sample) if sample else call.pipeline.verify.extent,
        repair=call.options.repair,
        dry_run=call.options.dry_run,
        run=call.run,
        progress=call.progress,
    )


if __name__ == "__main__":
    main(job, name="verify_tables", options=options)
