"""Rows that stay as they were found.

A cache is no place for rows of a table that is written while they are used: with every write Spark
drops the caches of plans that read the table, and computes them again from what is there then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame


@contextmanager
def frozen(
    rows: DataFrame, level: StorageLevel = StorageLevel.MEMORY_AND_DISK
) -> Iterator[DataFrame]:
    """``rows``, read once and now; kept for the length of the block."""
    kept = rows.localCheckpoint(storageLevel=level)
    try:
        yield kept
    finally:
        # Otherwise they lie there until the JVM collects the last reference to them. PySpark has
        # no name for the rows behind a checkpoint.
        kept._jdf.queryExecution().analyzed().rdd().unpersist(False)
