"""Java exceptions that say: try again later."""

from __future__ import annotations

import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tidegate.jobs.disclosure import as_tidegate_error

pytestmark = pytest.mark.spark

SECRET = "a row's own words"


@pytest.mark.parametrize(
    ("name", "message", "code"),
    [
        ("OutOfMemoryError", "GC overhead limit exceeded", "job.out_of_memory"),
        ("RuntimeException", "Lost task: java.lang.OutOfMemoryError: heap", "job.out_of_memory"),
        ("RuntimeException", "write: No space left on device", "lake.storage_full"),
        ("RuntimeException", "[SQLITE_BUSY_SNAPSHOT]", "lake.catalog_locked"),
        ("IllegalStateException", "something else", "job.unexpected"),
    ],
)
def test_found_among_the_causes_and_nothing_is_repeated(
    spark: SparkSession, name: str, message: str, code: str
) -> None:
    java = spark._jvm.java.lang  # type: ignore[union-attr]
    cause: JavaObject = getattr(java, name)(f"{message} {SECRET}")
    error = as_tidegate_error(Py4JJavaError("told", java.RuntimeException(SECRET, cause)))
    assert error.code == code
    assert SECRET not in str(error)
