"""One transaction of a million rows, with the memory everyone gets by default."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tests.support.faults import DOORS, Files, JobProcess, capture_process, job_arguments
from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate.config.platform import CaptureConfig, PlatformConfig, SparkConfig
from tidegate.errors import ExitCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1_000_000
TABLE = "public.measures"
CAPTURE_LIMIT_KB = 1_200_000
"""The raw transaction alone is 250 MB; twice the rows must not need more than this either."""


def test_a_transaction_of_a_million_rows_passes_in_bounded_memory(
    source_db: SourceDatabase, spark: SparkSession, spark_platform: PlatformConfig, tmp_path: Path
) -> None:
    source_db.sql(
        "CREATE TABLE measures (id bigint PRIMARY KEY, place text, value numeric(14,3),"
        " at timestamptz, good boolean, a int, b int, c double precision, note text, code uuid)"
    )
    by_default = PlatformConfig(
        lake=spark_platform.lake, spark=SparkConfig(master=spark_platform.spark.master)
    )
    assert by_default.capture == CaptureConfig()
    stack = Stack(source_db, spark, spark_platform, source_db.pipeline(TABLE))
    stack.deploy()
    stack.swept(TABLE)
    source_db.sql(
        "INSERT INTO measures SELECT i, 'place ' || i % 1000, i * 1.25, to_timestamp(i), i % 2 = 0,"
        " i, -i, i / 8.0, 'a note of some length ' || i, md5(i::text)::uuid"
        f" FROM generate_series(1, {ROWS}) i"
    )
    files = Files.write(tmp_path, stack.pipeline, by_default)
    with capture_process(files, tmp_path / "capture", "million") as capture:
        status, peak = capture.wait_measured()
    assert status == ExitCode.OK, capture.said()
    captured = capture.result()
    assert (captured.result["rows"], captured.result["transactions"]) == (ROWS, 1)
    print(f"capture: {captured.seconds:.1f} s, peak {peak / 1024:.0f} MB")
    assert peak < CAPTURE_LIMIT_KB

    folder = tmp_path / "apply"
    folder.mkdir()
    command = [str(DOORS / "apply_changes.py"), *job_arguments(files, folder, "million", ())]
    with JobProcess(command, folder, {}) as apply:
        assert apply.wait() == ExitCode.OK, apply.said()
        (table,) = apply.result().tables
        print(f"apply: {apply.result().seconds:.1f} s with the JVM's start")
    assert (table["status"], table["inserted"]) == ("applied", ROWS)
    rows = stack.table(TABLE).scan().to_arrow().sort_by("id")
    assert rows["id"].equals(pa.chunked_array([pa.array(range(1, ROWS + 1), pa.int64())]))
    # Quarters below 2^52 are exact in binary.
    assert rows["value"].cast(pa.float64()).equals(pc.multiply(rows["id"].cast(pa.float64()), 1.25))
    for column, wanted in (("a", "sum(a)"), ("b", "sum(b)"), ("c", "sum(c)")):
        assert pc.sum(rows[column]).as_py() == float(
            source_db.value(f"SELECT {wanted} FROM measures")
        )
    assert pc.count_distinct(rows["code"]).as_py() == ROWS
    assert not any(rows[name].null_count for name in rows.column_names)
