"""A job that never ends by itself; says which processes it consists of."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from tidegate.jobs.door import Call, main


def job(call: Call) -> Any:
    call.spark.range(10).count()
    mark = Path(os.environ["TIDEGATE_TEST_MARK"])
    part = mark.with_suffix(".part")
    part.write_text(f"{os.getpid()} {os.getppid()}")
    part.replace(mark)
    threading.Event().wait()


if __name__ == "__main__":
    main(job, name="wait_forever")
