"""What a JVM of ours is started with: Maven coordinates (the one place) and options."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import CatalogType, PlatformConfig
from tidegate.lake.catalog import SPARK_PREFIX, resolve

ICEBERG_VERSION: Final = "1.12.0"

JARS: Final[tuple[str, ...]] = (
    # Built for Spark 4.1; there is no runtime for 4.2 yet, which is why pyspark stays on 4.1.
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG_VERSION}",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.postgresql:postgresql:42.7.8",
    "org.mariadb.jdbc:mariadb-java-client:3.5.6",  # for MySQL too
)

LOCAL_FILES_JAR: Final = "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"
LOCAL_FILES: Final = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
"""Hadoop's own class starts `chmod` four times for every file it makes, because its native library
is in no jar: a tenth of all CPU time where small tables were swept and merged (*measured*). This
one asks Java to, and is so small (16 KB) that there is nothing to keep up."""

SETUP_JARS: Final = (*JARS, LOCAL_FILES_JAR)
"""What set-up fetches. Elsewhere Spark resolves what it needs at every start, which for the last
one takes a look into the network each time: local files go the slow way there."""

COMPILE_ALL: Final = "-XX:-DontCompileHugeMethods"
"""The casts of a table are one long generated method. Beyond 8,000 bytes of bytecode, a dozen
columns, HotSpot would leave it to the interpreter: half the speed (*measured*)."""
THROUGHPUT: Final = "-XX:+UseParallelGC"
"""Rows live for milliseconds and nobody waits for a pause: a fifth less CPU than the default
collector (*measured*)."""

CLASSES: Final = Path(sys.prefix, "tidegate", "spark.jsa")
"""Spark's classes as a JVM maps them into memory, if set-up made the file (scripts/fetch_jars.py):
half the CPU time of a start (*measured*). A JVM that it does not fit goes on without it."""

FETCHED: Final = CLASSES.with_name("jars.files")
"""Paths of what set-up fetched, one a line: given to Spark as they are, nothing is resolved."""

_PACKAGES: Final = "spark.jars.packages"

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


def jar_settings(
    platform: PlatformConfig, pipeline: PipelineConfig | None = None
) -> dict[str, str]:
    """Spark settings that bring our jars: as files where set-up fetched all that are wanted, else
    by coordinates (both at once would not do: Spark adds what it resolves to its list of files, and
    a session that is configured with the list would take it back).

    A platform that names packages itself has the last word."""
    given = platform.spark.conf
    wanted = jars(platform, pipeline)
    here = _fetched(platform)
    if not here or wanted != JARS:
        return {_PACKAGES: given.get(_PACKAGES, ",".join(wanted))}
    return {"spark.jars": ",".join([*here, *filter(None, [given.get("spark.jars")])])}


def local_files(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> dict[str, str]:
    """Catalog settings for a warehouse on a local disk, where the jar for it is among the jars."""
    on_disk = resolve(platform, pipeline).warehouse.startswith("file:")
    if not on_disk or "spark.jars" not in jar_settings(platform, pipeline):
        return {}
    return {
        f"{SPARK_PREFIX}.hadoop.fs.file.impl": LOCAL_FILES,
        # Spark has asked for Hadoop's own before any catalog is opened: it would be found again.
        f"{SPARK_PREFIX}.hadoop.fs.file.impl.disable.cache": "true",
    }


def jar_name(coordinates: str) -> str:
    """The file Ivy makes of an artifact."""
    group, artifact, version = coordinates.split(":")
    return f"{group}_{artifact}-{version}.jar"


def _fetched(platform: PlatformConfig) -> list[str]:
    """None if one is missing or of another version than today's."""
    if _PACKAGES in platform.spark.conf or not FETCHED.exists():
        return []
    paths = [Path(line) for line in FETCHED.read_text().splitlines()]
    found = {path.name for path in paths if path.exists()}
    return [str(path) for path in paths] if found >= set(map(jar_name, SETUP_JARS)) else []


def joined_options(platform: PlatformConfig, key: str, *ours: str) -> dict[str, str]:
    """A setting that holds JVM options: ours, and after them the platform's own."""
    return {key: " ".join(filter(None, (*ours, platform.spark.conf.get(key))))}


def jars(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> tuple[str, ...]:
    """Coordinates for one platform; the AWS bundle (150 MB) only where S3 or Glue is configured."""
    place = resolve(platform, pipeline)
    aws = place.warehouse.startswith("s3") or place.type is CatalogType.GLUE
    return JARS + ((AWS_BUNDLE,) if aws else ()) + platform.spark.extra_packages
