"""A job that fails with a row value in Spark's own message."""

from __future__ import annotations

from typing import Any

from tidegate.jobs.door import Call, main


def job(call: Call) -> Any:
    value = call.pipeline.source.password.get_secret_value()
    return call.spark.sql("SELECT CAST(:value AS INT)", args={"value": value}).collect()


if __name__ == "__main__":
    main(job, name="quote_value")
