"""``tidegate`` as a shell starts it: a real process, its streams apart, its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.api import CLIENT
from tests.support.postgres import SourceDatabase
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER

ENTRY = "import sys; from tidegate.cli.main import main; main(sys.argv[1:])"
ROOT = Path(__file__).parents[2]
INCLUDE = ROOT / "include"
SECONDS = 500
PASSWORD_VARIABLE = "TEST_SOURCE_PASSWORD"

_SECOND_VERBS = (
    *(("schema", verb) for verb in ("approve", "leave", "check", "register")),
    ("offsets", "set"),
)
"""`schema` and `offsets` alone show."""


class Shell:
    """One process for many commands: imports, and the JVM, are paid for once."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cli_shell_process"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{INCLUDE}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, words: list[str], folder: Path, variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        assert self._process.stdin is not None and self._process.stdout is not None
        order = {"words": words, "folder": str(folder), "variables": variables}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(words, answer["code"], answer["out"], answer["err"])

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(60) == 0


@dataclass
class Cli:
    """Commands run in ``folder``, on its ``pipeline.yaml`` and ``platform.yaml``."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    shell: Shell | None = None
    """Takes the commands that :meth:`run` and :meth:`result` are given; without it each is a
    process of its own."""

    @property
    def file(self) -> Path:
        return self.folder / "pipeline.yaml"

    def command(self, *words: str) -> list[str]:
        """The pipeline's file goes after the verb."""
        grouped = words[0] in ("gate", "lakehouse", "dead-letters") or words[:2] in _SECOND_VERBS
        verbs = 2 if grouped else 1
        return [*words[:verbs], str(self.file), *words[verbs:]]

    @property
    def own(self) -> dict[str, str]:
        return {
            "TIDEGATE_PLATFORM_FILE": str(self.folder / "platform.yaml"),
            PASSWORD_VARIABLE: PASSWORD,
            **self.variables,
        }

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(INCLUDE)} | self.own

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        if self.shell is not None:
            return self.shell.run(self.command(*words), self.folder, self.own)
        return subprocess.run(
            [sys.executable, "-c", ENTRY, *self.command(*words)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", ENTRY, *self.command(*words)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self, *words: str, code: int = 0) -> Any:
        """The document that ``--json`` prints; stdout must hold nothing else."""
        done = self.run(*words, "--json")
        said = f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == code and done.stdout, said
        document = json.loads(done.stdout)
        assert document["ok"] is (code == 0)
        return document["result" if "result" in document else "error"]


class Desk:
    """Commands in this very process: its own folder and environment, the same exit codes and
    streams. For scenarios of many commands, of which each would import for a second or more."""

    def __init__(
        self,
        folder: Path,
        capture: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        variables: dict[str, str],
    ) -> None:
        self.folder = folder
        self._capture = capture
        self._monkeypatch = monkeypatch
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(folder)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        from tidegate.cli.main import main

        self._capture.readouterr()
        with self._monkeypatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main(list(words))
        said = self._capture.readouterr()
        return subprocess.CompletedProcess(list(words), int(ended.value.code or 0), *said)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A process after all: for what runs until a signal."""
        return subprocess.Popen(
            [sys.executable, "-c", ENTRY, *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(INCLUDE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self, *words: str, code: int = 0, **variables: str) -> Any:
        """The document that ``--json`` prints; stdout must hold nothing else."""
        done = self.run(*words, "--json", **variables)
        assert done.returncode == code, f"{words}: {done}"
        document = json.loads(done.stdout)
        assert document["ok"] is (code == 0)
        return document["result" if "result" in document else "error"]


def probe(url: str, wanted: Callable[[httpx.Response], bool]) -> httpx.Response:
    """Ask as a kubelet does, until the answer is ``wanted``."""
    deadline = time.monotonic() + 60
    while True:
        answer = CLIENT.get(url)
        if wanted(answer) or time.monotonic() > deadline:
            assert wanted(answer), answer.text
            return answer
        threading.Event().wait(0.02)


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    made = Shell()
    yield made
    made.close()


@pytest.fixture
def desk(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Desk]:
    """Makes a :class:`Desk` in ``tmp_path``; keyword arguments are environment variables."""
    return lambda **variables: Desk(tmp_path, capfd, monkeypatch, variables)


def with_columns(cli: Cli, table: str, columns: dict[str, Any]) -> None:
    """Edit the pipeline's file: the columns' own block."""
    pipeline = yaml.safe_load(cli.file.read_text(encoding="utf-8"))
    iceberg = {"tables": {table: {"columns": columns}}}
    pipeline["sinks"] = [{"sink_id": "lake", "sink_type": "iceberg", "iceberg": iceberg}]
    cli.file.write_text(yaml.safe_dump(pipeline), encoding="utf-8")


def configured(
    folder: Path, database: SourceDatabase, *tables: str, shell: Shell | None = None, **source: Any
) -> Cli:
    """A pipeline on ``database`` with its lake below ``folder``."""
    pipeline = {
        "pipeline_id": database.name,
        "source": {
            "host": "127.0.0.1",
            "port": database.server.port,
            "database": database.name,
            "username": SUPERUSER,
            "password": f"${{{PASSWORD_VARIABLE}}}",
            "tables": list(tables),
            **source,
        },
    }
    platform = {
        "lake": {"home": "home"},
        "spark": {
            "master": "local[2]",
            "driver_memory": "1g",
            "conf": {"spark.sql.shuffle.partitions": "2"},
        },
        "retry": {"max_attempts": 1},
        "health_port": 0,
    }
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(pipeline), encoding="utf-8")
    (folder / "platform.yaml").write_text(yaml.safe_dump(platform), encoding="utf-8")
    return Cli(folder, shell=shell)
