"""Files of a local warehouse are made by Java itself, without a process for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.lake.jars import LOCAL_FILES
from tidegate.spark.publish import _loaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_tables_make_their_files_without_starting_processes(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.local_files")
    spark.sql("CREATE TABLE lake.local_files.t USING iceberg AS SELECT 1 AS id")
    table = _loaded(spark, ("local_files", "t"))
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(table.location())
    made_by = jvm.org.apache.iceberg.hadoop.Util.getFs(path, table.io().getConf())
    assert made_by.getClass().getName() == LOCAL_FILES
    assert spark.table("lake.local_files.t").count() == 1
