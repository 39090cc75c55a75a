"""Stands in for capture where only its frame matters: says it is ready, then ends or waits."""

from __future__ import annotations

import os
import threading
from typing import Any

from tidegate.jobs.door import Call, main


def job(call: Call) -> Any:
    password = call.pipeline.source.password.get_secret_value()
    call.progress("ready", os.getpid(), None, "pid")
    if "TIDEGATE_TEST_WAIT" in os.environ:
        threading.Event().wait()
    return {"rows": 12, "through": "e/1", "secret_length": len(password)}


if __name__ == "__main__":
    main(job, name="capture", spark=False)
