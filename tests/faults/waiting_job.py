"""A job process that has its Spark session already and waits for the order what to do.

``python -m tests.faults.waiting_job PLATFORM_FILE``, then one line of JSON on standard input.
"""

from __future__ import annotations

import json
import os
import runpy
import sys

from tidegate.config.loader import load_platform
from tidegate.spark.session import spark_session


def main() -> None:
    spark_session(load_platform(sys.argv[1]), app_name="waiting job")
    line = sys.stdin.readline()
    if not line:  # whoever started this is gone, or has no use for it
        return
    order = json.loads(line)
    os.environ.update(order["environment"])
    sys.argv = [order["door"], *order["arguments"]]
    runpy.run_path(order["door"], run_name="__main__")


if __name__ == "__main__":
    main()
