"""Merge the change log into the open tables of a pipeline."""

from __future__ import annotations

from typing import Any

from tidegate.jobs.door import Call, main


def job(call: Call) -> Any:
    from tidegate.jobs.apply import run_apply

    return run_apply(
        call.spark,
        call.pipeline,
        call.platform,
        tables=call.tables,
        run=call.run,
        progress=call.progress,
    )


if __name__ == "__main__":
    main(job, name="apply_changes")
