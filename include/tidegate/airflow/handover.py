"""What passes between a task and the job process it starts: a directory only its owner can enter.

Secrets and Spark settings go in by file, so they are in no argument, template or rendered field
(I9); the result comes out by file. The directory is gone when the task ends; what a task that was
killed could not remove, the next one on its host does.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tidegate
from tidegate.config.secrets import Secrets, write_secrets_file
from tidegate.jobs.lifeline import OWNER_VARIABLE, owner_mark
from tidegate.jobs.result import JobResult, read_result
from tidegate.lake.owner import is_gone, me
from tidegate.observability.caller import Caller

_PREFIX: Final = "tidegate-job-"


@dataclass(frozen=True, slots=True)
class Handover:
    """Files of one job run."""

    directory: Path

    @property
    def secrets(self) -> Path:
        return self.directory / "secrets.json"

    @property
    def spark_conf(self) -> Path:
        return self.directory / "spark.conf"

    def write_secrets(self, secrets: Secrets) -> None:
        write_secrets_file(self.secrets, secrets)

    def write_spark_conf(self, conf: Mapping[str, str]) -> None:
        """A properties file: catalog and storage keys may be among the settings."""
        lines = [f"{_escape(key, ' :=#!')}={_escape(value, '')}\n" for key, value in conf.items()]
        descriptor = os.open(self.spark_conf, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(lines)

    def result(self) -> JobResult | None:
        return read_result(self.directory / "result.json")

    def arguments(self, pipeline_file: str, platform_file: str | None, run: str) -> list[str]:
        """The arguments every job takes (jobs/door.py)."""
        return [
            *("--pipeline", pipeline_file),
            *("--platform", platform_file or "none"),
            *("--run", run),
            *("--result", str(self.directory / "result.json")),
            *("--secrets", str(self.secrets)),
        ]


@contextmanager
def handover() -> Iterator[Handover]:
    """A fresh directory, mode 0700, named by the process that owns it."""
    _remove_those_of_the_dead()
    owner = me().replace(":", "+")  # a colon separates paths elsewhere
    directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{owner}-"))
    try:
        yield Handover(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _remove_those_of_the_dead() -> None:
    """A task that got SIGKILL leaves its directory, perhaps with secrets nobody read (I9)."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = left.name.removeprefix(_PREFIX).rpartition("-")[0].replace("+", ":")
        if is_gone(owner):
            shutil.rmtree(left, ignore_errors=True)  # another user's stays theirs


def job_environment(caller: Caller) -> dict[str, str]:
    """This environment, with our Python for every part of the job, its owner and who asked for it
    named."""
    package_root = str(Path(tidegate.__file__).parents[1])
    inherited = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, (package_root, inherited))),
        "PYTHONUNBUFFERED": "1",
        OWNER_VARIABLE: owner_mark(),
        **caller.variable(),
    }


def _escape(text: str, special: str) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    for character in special:
        text = text.replace(character, f"\\{character}")
    return text
