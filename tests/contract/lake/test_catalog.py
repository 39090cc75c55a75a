"""The catalog: one SQLite file, many processes."""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import queue
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from sqlalchemy import create_engine

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import (
    CatalogConfig,
    CatalogType,
    LakeConfig,
    PlatformConfig,
    SparkConfig,
)
from tidegate.config.sinks import IcebergSink, SinkConfig, SinkType
from tidegate.errors import RetriableError
from tidegate.lake import catalog as catalogs
from tidegate.lake import catalog_waits
from tidegate.lake.catalog import load, open_catalog, resolve, spark_catalog_conf
from tidegate.lake.jars import AWS_BUNDLE, JARS, jars


def with_sink(pipeline: PipelineConfig, sink: IcebergSink) -> PipelineConfig:
    entry = SinkConfig(sink_id="lake", sink_type=SinkType.ICEBERG, iceberg=sink)
    return pipeline.model_copy(update={"sinks": (entry,)})


def test_a_missing_table_is_none(catalog: Catalog) -> None:
    assert load(catalog, ("shop", "nothing")) is None


def test_both_engines_open_the_same_file(platform: PlatformConfig) -> None:
    conf = spark_catalog_conf(platform)
    home = catalogs.home(platform)
    assert home.is_absolute()
    assert conf["spark.sql.catalog.lake.uri"] == f"jdbc:sqlite:{home}/catalog.db"
    assert conf["spark.sql.catalog.lake.warehouse"] == f"file://{home}/warehouse"
    assert conf["spark.sql.catalog.lake.cache-enabled"] == "false"
    assert conf["spark.sql.catalog.lake.jdbc.schema-version"] == "V1"
    assert int(conf["spark.sql.catalog.lake.jdbc.busy_timeout"]) >= 10_000
    open_catalog(platform).close()
    assert (home / "catalog.db").is_file()


def test_a_sink_may_name_its_own_catalog_and_warehouse(
    platform: PlatformConfig, pipeline: PipelineConfig, tmp_path: Path
) -> None:
    own = with_sink(
        pipeline,
        IcebergSink(
            catalog_uri=f"sqlite:///{tmp_path}/own.db", warehouse=f"file://{tmp_path}/own/"
        ),
    )
    place = resolve(platform, own)
    assert (place.type, place.uri) == (CatalogType.SQLITE, f"{tmp_path}/own.db")
    assert place.warehouse == f"file://{tmp_path}/own"


def test_other_catalogs_and_s3_by_configuration_only(pipeline: PipelineConfig) -> None:
    rest = PlatformConfig(
        lake=LakeConfig(
            warehouse="s3://bucket/lake",
            catalog=CatalogConfig(
                type=CatalogType.REST,
                uri="http://localhost:8181",
                properties={"s3.endpoint": "http://localhost:9000"},
            ),
        ),
        spark=SparkConfig(extra_packages=("a:b:1",)),
    )
    conf = spark_catalog_conf(rest, pipeline)
    assert conf["spark.sql.catalog.lake.type"] == "rest"
    assert conf["spark.sql.catalog.lake.uri"] == "http://localhost:8181"
    assert conf["spark.sql.catalog.lake.s3.endpoint"] == "http://localhost:9000"
    assert conf["spark.sql.catalog.lake.io-impl"].endswith("S3FileIO")
    assert jars(rest, pipeline) == (*JARS, AWS_BUNDLE, "a:b:1")


def test_the_aws_bundle_is_fetched_only_where_it_is_needed(platform: PlatformConfig) -> None:
    assert jars(platform) == JARS


def test_a_jdbc_uri_becomes_sqlalchemys(platform: PlatformConfig) -> None:
    uri = catalogs._sqlalchemy_uri(
        "jdbc:postgresql://db:5432/iceberg", {"jdbc.user": "me", "jdbc.password": "p@ss"}
    )
    assert uri == "postgresql+psycopg2://me:p%40ss@db:5432/iceberg"
    create_engine(uri).dispose()


def test_a_lock_that_outlasts_the_wait_is_retriable(
    platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "BUSY_SECONDS", 0.2)
    opened = open_catalog(platform)
    blocker = sqlite3.connect(resolve(platform).uri or "")
    blocker.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(RetriableError) as caught:
            opened.create_namespace("shop")
        assert caught.value.code == "lake.catalog_locked"
        with pytest.raises(RetriableError):
            open_catalog(platform)
    finally:
        blocker.rollback()
        blocker.close()
    opened.create_namespace("shop")
    opened.close()


WRITER = """
import json, sys
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import RetriableError
from tidegate.lake import commits
from tidegate.lake.catalog import open_catalog
from tidegate.lake.reports import Reports

platform = PlatformConfig.model_validate_json(sys.argv[1])
pipeline = PipelineConfig.model_validate(json.loads(sys.argv[2]))
reports = Reports(open_catalog(platform, pipeline), pipeline)
for number in range(int(sys.argv[4])):
    reports.add("apply", f"{sys.argv[3]}-{number}", {"number": number})
"""


def test_processes_that_start_and_write_at_once_lose_nothing(
    platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    from tidegate.lake.reports import Reports

    writers, each = 3, 8
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                WRITER,
                platform.model_dump_json(),
                json.dumps(
                    {
                        "pipeline_id": pipeline.pipeline_id,
                        "source": {
                            "password": "unused",
                            "database": "shop",
                            "tables": list(pipeline.source.tables),
                        },
                    }
                ),
                f"w{number}",
                str(each),
            ],
            env={**os.environ, "PYTHONPATH": "include"},
        )
        for number in range(writers)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0] * writers
    opened = open_catalog(platform, pipeline)
    runs = [report.run for report in Reports(opened, pipeline).recent(limit=100)]
    opened.close()
    assert sorted(runs) == sorted(f"w{w}-{n}" for w in range(writers) for n in range(each))


def test_a_locked_catalog_is_told_once_while_it_is_waited_for(
    platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: queue.Queue[logging.LogRecord] = queue.Queue()
    catcher = logging.handlers.QueueHandler(told)
    monkeypatch.setattr(catalog_waits, "SAY_SECONDS", 0.1)
    monkeypatch.setattr(catalogs, "BUSY_SECONDS", 0.4)
    open_catalog(platform).close()
    monkeypatch.setattr(catalog_waits, "_WAITS", {})
    logger = logging.getLogger(catalog_waits.__name__)
    logger.addHandler(catcher)
    try:
        with closing(sqlite3.connect(catalogs.home(platform) / "catalog.db")) as other:
            other.isolation_level = None
            other.execute("BEGIN EXCLUSIVE")
            for _ in range(2):
                with pytest.raises(RetriableError):
                    open_catalog(platform)
            monkeypatch.setattr(catalogs, "BUSY_SECONDS", 60.0)
            waiting = threading.Thread(target=lambda: open_catalog(platform).close())
            waiting.start()
            waiting.join(0.5)
            assert waiting.is_alive()
            other.execute("ROLLBACK")
            waiting.join(30)
        assert not waiting.is_alive()
    finally:
        logger.removeHandler(catcher)
    lines = [told.get_nowait().getMessage() for _ in range(told.qsize())]
    assert [line for line in lines if "locked by another process" in line] == lines[:1]
    assert lines[1:] in ([], ["the catalog is free again"])


def test_a_slow_statement_is_no_lock(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "c.db")) as own:
        own.execute("CREATE TABLE t (n int)")
        own.commit()
    assert not catalog_waits._is_locked(tmp_path / "c.db")
