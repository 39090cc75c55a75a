"""What a JVM of ours is started with: Maven coordinates (the one place) and options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import CatalogType, PlatformConfig
from tidegate.lake.catalog import resolve

ICEBERG_VERSION: Final = "1.12.0"

JARS: Final[tuple[str, ...]] = (
    # Built for Spark 4.1; there is no runtime for 4.2 yet, which is why pyspark stays on 4.1.
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG_VERSION}",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.postgresql:postgresql:42.7.8",
    "org.mariadb.jdbc:mariadb-java-client:3.5.6",  # for MySQL too
)

COMPILE_ALL: Final = "-XX:-DontCompileHugeMethods"
"""The casts of a table are one long generated method. Beyond 8,000 bytes of bytecode, a dozen
columns, HotSpot would leave it to the interpreter: half the speed (*measured*)."""
THROUGHPUT: Final = "-XX:+UseParallelGC"
"""Rows live for milliseconds and nobody waits for a pause: a fifth less CPU than the default
collector (*measured*)."""

CLASSES: Final = Path(sys.prefix, "tidegate", "spark.jsa")
"""Spark's classes as a JVM maps them into memory, if set-up made the file (scripts/fetch_jars.py):
half the CPU time of a start (*measured*). A JVM that it does not fit goes on without it."""

AWS_BUNDLE: Final = f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG_VERSION}"


def jvm_options(platform: PlatformConfig) -> dict[str, str]:
    """Spark settings with our JVM options. A collector that someone chose already stays, because a
    JVM with two does not start."""
    given = " ".join((*platform.spark.conf.values(), os.environ.get("JDK_JAVA_OPTIONS", "")))
    options = COMPILE_ALL if "GC" in given else f"{COMPILE_ALL} {THROUGHPUT}"
    mapped = f"-XX:SharedArchiveFile={CLASSES} -Xlog:cds=off" if CLASSES.exists() else ""
    return {
        **joined_options(platform, "spark.driver.defaultJavaOptions", options, mapped),
        **joined_options(platform, "spark.executor.defaultJavaOptions", options),
    }


def joined_options(platform: PlatformConfig, key: str, *ours: str) -> dict[str, str]:
    """A setting that holds JVM options: ours, and after them the platform's own."""
    return {key: " ".join(filter(None, (*ours, platform.spark.conf.get(key))))}


def jars(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> tuple[str, ...]:
    """Coordinates for one platform; the AWS bundle (150 MB) only where S3 or Glue is configured."""
    place = resolve(platform, pipeline)
    aws = place.warehouse.startswith("s3") or place.type is CatalogType.GLUE
    return JARS + ((AWS_BUNDLE,) if aws else ()) + platform.spark.extra_packages
