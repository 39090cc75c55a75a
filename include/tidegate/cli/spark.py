"""A Spark session for one command, with Spark's own noise kept off the terminal.

The JVM inherits the process's stdout and stderr when it starts and writes to them for as long as it
lives (Ivy's resolution report, warnings, log lines). While it starts, both point to a file in the
lake's home; the console has descriptors of its own and is not affected.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate.cli.invocation import Invocation
from tidegate.cli.output import Output
from tidegate.errors import SetupError

if TYPE_CHECKING:
    from tidegate.config.pipeline import PipelineConfig
    from tidegate.config.platform import PlatformConfig
    from tidegate.spark.session import SparkSession

LOG_FOLDER: Final = "logs"


@contextmanager
def spark(call: Invocation, verb: str) -> Iterator[SparkSession]:
    """A session that ends with the command."""
    name = f"tidegate {verb} {call.pipeline.pipeline_id}"
    with started(call.output, call.platform, call.pipeline, name) as session:
        yield session


@contextmanager
def started(
    output: Output, platform: PlatformConfig, pipeline: PipelineConfig | None, name: str
) -> Iterator[SparkSession]:
    """A session on a platform, of a pipeline or of none."""
    log = log_file(platform)
    with output.err.status("starting Spark…"):
        if not output.err.is_terminal:
            output.note("starting Spark…")
        with _descriptors_to(log):
            session = _session(platform, pipeline, name, log)
    try:
        yield session
    finally:
        with _descriptors_to(log):
            session.stop()
    log.unlink(missing_ok=True)  # kept only where something went wrong


def log_file(platform: PlatformConfig) -> Path:
    """Where this process's Spark writes."""
    folder = Path(platform.lake.home) / LOG_FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            "cli.home_unwritable",
            f"{folder} cannot be created: {error.strerror}",
            hint="set lake.home in platform.yaml to a directory this user can write",
        ) from error
    return folder / f"spark-{os.getpid()}.log"


def _session(
    platform: PlatformConfig, pipeline: PipelineConfig | None, name: str, log: Path
) -> Any:
    from tidegate.spark.session import spark_session

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyspark's own, about optional packages
            return spark_session(platform, pipeline, app_name=name)
    except SetupError as error:
        raise SetupError(error.code, f"{error.message}; see {log}", hint=error.hint) from error


@contextmanager
def _descriptors_to(path: Path) -> Iterator[None]:
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for number, _ in kept:
            os.dup2(target, number)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(target)
