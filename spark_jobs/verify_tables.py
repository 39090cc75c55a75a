"""Compare source and lake at one stated position."""

from __future__ import annotations

from typing import Any

from tidegate.jobs.door import Call, main


def job(call: Call) -> Any:
    from tidegate.jobs.verify import run_verify

    return run_verify(
        call.spark,
        call.pipeline,
        call.platform,
        tables=call.tables,
        run=call.run,
        progress=call.progress,
    )


if __name__ == "__main__":
    main(job, name="verify_tables")
