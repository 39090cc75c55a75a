"""A throw-away Airflow: home, metadata database and pipeline files below a temporary directory.

Airflow reads its configuration when it is first imported, so the environment is set before that.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
HOME = Path(tempfile.mkdtemp(prefix="tidegate-airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__API_AUTH__JWT_SECRET": "only-for-tests-only-for-tests-only-for-tests",
}

AIRFLOW_WARNINGS = (
    # Airflow 3.3 still calls what it deprecates; none of it comes from our code.
    "ignore::DeprecationWarning:airflow",
    "ignore::airflow.exceptions.RemovedInAirflow4Warning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for warning in AIRFLOW_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def airflow_db() -> Path:
    """The migrated metadata database, made once per session."""
    subprocess.run(
        [sys.executable, "-m", "airflow", "db", "migrate"],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    return HOME / "airflow.db"


PipelineFile = Callable[..., Path]


@pytest.fixture
def pipelines(tmp_path: Path) -> Path:
    """An empty directory of pipeline files."""
    directory = tmp_path / "pipelines"
    directory.mkdir()
    return directory


@pytest.fixture
def pipeline_file(pipelines: Path) -> PipelineFile:
    """Write a pipeline file and say where it is."""

    def write(pipeline_id: str = "shop", *, source: str = "", rest: str = "") -> Path:
        file = pipelines / f"{pipeline_id}.yaml"
        file.write_text(
            f"pipeline_id: {pipeline_id}\n"
            "source:\n"
            "  database: shop\n"
            "  password: ${TIDEGATE_TEST_PASSWORD}\n"
            "  tables: [public.customers, public.orders]\n"
            f"{source}{rest}"
        )
        return file

    return write


@pytest.fixture
def platform_file(tmp_path: Path) -> Path:
    """A platform with all state below ``tmp_path`` and a small Spark."""
    file = tmp_path / "platform.yaml"
    file.write_text(
        "lake: {home: lake}\n"
        "spark:\n"
        "  master: local[1]\n"
        "  driver_memory: 1g\n"
        "  conf: {spark.sql.shuffle.partitions: '2'}\n"
        "gate: {lease_seconds: 2, wait_seconds: 60}\n"
    )
    return file


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that Airflow's plugin serves; it reads them where it first found them, so one
    folder for every module that starts a server."""
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "shop.yaml").write_text(
        "pipeline_id: shop\nsource: {password: unused, database: shop, tables: [public.orders]}\n"
    )
    (folder / "platform.yaml").write_text("lake: {home: lake}\n")
    return folder


class Airflow:
    """An Airflow of one's own: a copy of the migrated database, a folder of Dags."""

    def __init__(self, directory: Path, migrated: Path) -> None:
        self.dags = directory / "dags"
        self.dags.mkdir()
        self.logs = directory / "logs"
        self._events = directory / "lineage.jsonl"
        self.database = directory / "airflow.db"
        shutil.copy(migrated, self.database)
        self.environment = {
            **os.environ,
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.database}",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.logs),
            "PYTHONPATH": os.pathsep.join((str(PROJECT / "include"), str(PROJECT))),
            "PYTHONWARNINGS": "ignore",
        }

    def start(
        self, dag_id: str, conf: str = "{}", date: str | None = None, **environment: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.dags.drive", dag_id, conf, *([date] if date else [])],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**self.environment, **environment},
        )

    def run(
        self, dag_id: str, conf: str = "{}", date: str | None = None, **environment: str
    ) -> Run:
        with self.start(dag_id, conf, date, **environment) as process:
            output, _ = process.communicate()
        # Listeners may still say something after the run's own last line.
        told = [line for line in output.splitlines() if line.startswith('{"state"')]
        assert told, output
        ended = json.loads(told[-1])
        return Run(ended["state"], ended["tasks"], output)

    @property
    def lineage(self) -> dict[str, str]:
        """Settings that make Airflow's OpenLineage provider write events to a file."""
        told = {"type": "file", "log_file_path": str(self._events), "append": True}
        return {"AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(told)}

    def events(self, task: str) -> dict[str, Any]:
        """The last event of each type that a task sent, each as OpenLineage wants it."""
        found: dict[str, Any] = {}
        for line in self._events.read_text().splitlines():
            event = json.loads(line)
            uuid.UUID(event["run"]["runId"])
            datetime.fromisoformat(event["eventTime"])
            assert event["producer"].startswith("https://") and event["schemaURL"]
            if event["job"]["name"] == task:
                found[event["eventType"]] = event
        return found

    def everything_stored(self) -> str:
        """The whole metadata database and all log files, as text."""
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            parts = ["\n".join(connection.iterdump())]
        parts += [file.read_text() for file in self.logs.rglob("*") if file.is_file()]
        return "\n".join(parts)


@dataclass(frozen=True)
class Run:
    """How a Dag run ended."""

    state: str
    tasks: dict[str, str]
    output: str


@pytest.fixture
def airflow(tmp_path: Path, airflow_db: Path) -> Airflow:
    return Airflow(tmp_path, airflow_db)
