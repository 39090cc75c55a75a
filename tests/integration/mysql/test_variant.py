"""MySQL's documents as variants, by sweep and by log; MariaDB has no json of its own."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.mysql import MysqlDatabase
from tests.support.stack import SMALL_CHUNKS, Stack
from tidegate.config.platform import PlatformConfig
from tidegate.control import dead_letters
from tidegate.control.validation import validate_pipeline
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.jobs.verify import run_verify
from tidegate.lake.dead_letter_choice import Choice
from tidegate.spark.publish import spark_name

pytestmark = [pytest.mark.spark, pytest.mark.mysql]

DOCS = "CREATE TABLE docs (id int PRIMARY KEY, doc json, note varchar(20))"
ROWS = """INSERT INTO docs VALUES ({0} + 1, '{{"bb": 1.5, "a": [1, null, "é😀"], "c": {{}}}}', 'x'),
    ({0} + 2, 'null', 'x'), ({0} + 3, NULL, 'x'), ({0} + 4, '[18446744073709551615, true]', 'x')"""


def pipeline_of(db: MysqlDatabase) -> Any:
    tables = {f"{db.name}.docs": {"columns": {"doc": {"type": "variant"}}}}
    lake = {"sink_id": "lake", "sink_type": "iceberg", "iceberg": {"tables": tables}}
    return db.pipeline("docs", sinks=[lake])


def value(text: str | None) -> Any:
    return "NULL" if text is None else json.loads(text, parse_int=Decimal, parse_float=Decimal)


def lake(made: Stack) -> dict[int, Any]:
    rows = made.spark.table(spark_name(made.pipeline.targets[0])).select("id", F.to_json("doc"))
    return {row[0]: value(row[1]) for row in rows.collect()}


def source(db: MysqlDatabase) -> dict[int, Any]:
    return {row[0]: value(row[1]) for row in db.rows("SELECT id, CAST(doc AS CHAR) FROM docs")}


def apply(made: Stack) -> Any:
    run_capture(made.pipeline, made.platform)
    (result,) = run_apply(made.spark, made.pipeline, made.platform, run="apply").tables
    assert result.error is None, result.error
    return result


def test_sweep_and_log_give_the_same_documents(
    mysql8_db: MysqlDatabase, spark: SparkSession, spark_platform: PlatformConfig
) -> None:
    mysql8_db.sql(DOCS, ROWS.format(0))
    platform = spark_platform.model_copy(update={"sweep": SMALL_CHUNKS})
    made = Stack(mysql8_db, spark, platform, pipeline_of(mysql8_db))  # type: ignore[arg-type]
    made.deploy()
    made.swept()
    assert lake(made) == source(mysql8_db)
    mysql8_db.sql(
        ROWS.format(10),
        "UPDATE docs SET doc = JSON_SET(doc, '$.a', 7) WHERE id = 1",
        "UPDATE docs SET note = 'y' WHERE id = 4",
        "DELETE FROM docs WHERE id = 2",
    )
    apply(made)
    assert lake(made) == source(mysql8_db)
    (verdict,) = run_verify(made.spark, made.pipeline, made.platform).tables
    assert (verdict.error, verdict.status) == (None, "equal")
    mysql8_db.sql("INSERT INTO docs VALUES (20, '[1e100]', 'a float')")
    assert apply(made).parked == 1
    refused = made.sweep().tables[0].error  # sweeps of MySQL make no letters
    assert refused is not None and refused.code == "sweep.inexact_values"
    found = dead_letters.find(made.pipeline, made.platform, None, Choice()).letters
    assert [letter.key for letter in found] == [("20",)]
    assert 20 not in lake(made)


def test_mariadbs_json_is_text_and_stays_it(
    mysql_db: MysqlDatabase, platform: PlatformConfig
) -> None:
    mysql_db.sql(DOCS)
    findings = validate_pipeline(pipeline_of(mysql_db), platform).findings
    wrong = [one.message for one in findings if one.code == "config.column_override"]
    assert len(wrong) == 1 and "cannot become variant" in wrong[0]
