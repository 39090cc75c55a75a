"""The Spark session: one per application, configured for the lake.

``spark-submit`` starts the JVM before any Python runs, so whatever must be known by then (jars,
driver memory) is passed on its command line from :func:`session_conf`; in a plain Python process
the same configuration starts the JVM.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame as DataFrame  # for annotations above this layer
from pyspark.sql import SparkSession as SparkSession

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import SetupError
from tidegate.lake.catalog import SPARK_PREFIX, spark_catalog_conf
from tidegate.lake.jars import LOCAL_FILES_JAR, jar_name, jar_settings, jvm_options, local_files
from tidegate.spark.java_names import remember

EXTENSIONS: Final = "spark.sql.extensions"

_FIXED: Final[dict[str, str]] = {
    # Casts, comparisons and partition days must not depend on where the driver runs (I6).
    "spark.sql.session.timeZone": "UTC",
    # Overflow and bad casts raise instead of yielding NULL (I6).
    "spark.sql.ansi.enabled": "true",
    # Source tables may have columns that differ in case only.
    "spark.sql.caseSensitive": "true",
    # A variant has one value per key: of several, Spark would silently keep the last (I6).
    "spark.sql.variant.allowDuplicateKeys": "false",
    "spark.sql.adaptive.enabled": "true",
    # `timestamp` in our DDL means an instant; the type without zone is always spelled out.
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}

_DEFAULTS: Final[dict[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # PySpark notes the Python line of every column expression for its error messages: several
    # calls to the JVM for each. About a third of Python's time in small applies was that (py-spy).
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Plans hold key bounds as literals; nothing below ERROR is worth the risk of a value (I9).
    "spark.log.level": "ERROR",
    # Batches are small next to tables: few shuffle partitions, which AQE may still split or join.
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "4m",
    "spark.scheduler.mode": "FAIR",  # tables side by side share the executors
    "spark.driver.host": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
    # Batches of the same tables come again and again, and each has a dozen pieces of generated
    # code: of 66 tables, those kept by default were gone when they were wanted (*measured*: a
    # seventh of the JVM's CPU time).
    "spark.sql.codegen.cache.maxEntries": "2000",
    # A batch is cached for seconds; compressing it took longer than it saved (*measured*).
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}

_QUOTING_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark logs every exception's message by itself, the value of a failed cast included (I9)."""

_LOCAL_ONLY: Final = frozenset({"spark.driver.host"})


def session_conf(
    platform: PlatformConfig, pipeline: PipelineConfig | None = None
) -> dict[str, str]:
    """Everything a session of ours is configured with, for builders and ``spark-submit`` alike.

    The user's ``spark.conf`` overrides the defaults, never what exactness depends on.
    """
    conf = dict(_DEFAULTS)
    if not platform.spark.master.startswith("local"):
        conf = {key: value for key, value in conf.items() if key not in _LOCAL_ONLY}
    conf |= {"spark.driver.memory": platform.spark.driver_memory}
    conf |= platform.spark.conf | jar_settings(platform, pipeline) | jvm_options(platform)
    catalog = local_files(platform, pipeline) | spark_catalog_conf(platform, pipeline)
    return conf | _FIXED | catalog


def spark_session(
    platform: PlatformConfig, pipeline: PipelineConfig | None = None, app_name: str = "tidegate"
) -> SparkSession:
    """The application's session, made on the first call.

    A session that exists already (notebook, tests) is taken as it is, with our SQL settings on
    top; it must have been started with Iceberg's extensions.
    """
    # Executors start Python by this variable; without it they take whatever PATH offers.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = session_conf(platform, pipeline)
    existing = SparkSession.getActiveSession()
    if existing is not None:
        return _adopt(existing, conf)
    builder = SparkSession.builder.appName(app_name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not under spark-submit, which names the master
        builder = builder.master(platform.spark.master)
    # What is known when the JVM starts is in its arguments, for every user of the machine to see;
    # the catalog's settings may hold keys, and are only needed once it runs (I9).
    later = {key: value for key, value in conf.items() if key.startswith(SPARK_PREFIX)}
    for key, value in conf.items():
        if key not in later:
            builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise SetupError(
            "spark.no_jvm",
            "Spark's Java process did not start",
            hint="install a Java 17+ runtime and set JAVA_HOME; its own message is above",
        ) from error
    for key, value in later.items():
        session.conf.set(key, value)
    return _checked(session)


def lake_conf(session: SparkSession) -> dict[str, str]:
    """What a new session of the same application must be given to see the same lake.

    ``newSession`` starts from the application's configuration and forgets what was set since.
    """
    wanted = (SPARK_PREFIX, *_FIXED)
    everything = session.conf.getAll
    return {key: value for key, value in everything.items() if key.startswith(wanted)}


def _adopt(session: SparkSession, conf: dict[str, str]) -> SparkSession:
    if jar_name(LOCAL_FILES_JAR) not in (session.conf.get("spark.jars", "") or ""):
        conf = {key: value for key, value in conf.items() if ".hadoop.fs.file." not in key}
    for key, value in conf.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return _checked(session)


def _checked(session: SparkSession) -> SparkSession:
    for name in _QUOTING_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    if "IcebergSparkSessionExtensions" not in (session.conf.get(EXTENSIONS, "") or ""):
        raise SetupError(
            "spark.no_iceberg",
            "this Spark application was started without Iceberg's SQL extensions",
            hint="start it through tidegate, or pass tidegate.spark.session.session_conf(...)",
        )
    remember(session)
    return session
