"""A few rows of the driver's as a DataFrame.

From a list, PySpark serialises rows once more in Python worker processes, which take a second to
start; Arrow goes to the JVM as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession


def local_rows(session: SparkSession, **columns: tuple[pa.DataType, Iterable[Any]]) -> DataFrame:
    """``local_rows(session, id=(pa.int64(), [1, 2]))``"""
    arrays = {name: pa.array(list(values), type_) for name, (type_, values) in columns.items()}
    return session.createDataFrame(pa.table(arrays))
