"""Real processes that halt at a fault point, and are killed there.

``TIDEGATE_FAULT=<point>@stop`` makes a process stop itself (SIGSTOP) exactly after a durable step;
the test sees that it stands still, and kills it (SIGKILL). Nothing of it runs in between.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import psutil
import yaml

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.jobs.result import JobResult, read_result

ROOT: Final = Path(__file__).resolve().parent.parent.parent
DOORS: Final = ROOT / "spark_jobs"
PATIENCE: Final = float(os.environ.get("TIDEGATE_TEST_PATIENCE", "240"))
"""Seconds after which a process that should have done something is taken to hang."""
_POLL: Final = 0.02


def until(true: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Poll ``true`` until it is; what it said."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (found := true()):
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still not: {what}"
        pause.wait(_POLL)
    return found


@dataclass(frozen=True, slots=True)
class Files:
    """A pipeline and a platform as files, for processes."""

    pipeline: Path
    platform: Path

    @classmethod
    def write(cls, folder: Path, pipeline: PipelineConfig, platform: PlatformConfig) -> Files:
        document = pipeline.model_dump(mode="json", exclude_defaults=True)
        document["source"]["password"] = pipeline.source.password.get_secret_value()
        files = cls(folder / "pipeline.yaml", folder / "platform.yaml")
        files.pipeline.write_text(yaml.safe_dump(document))
        files.platform.write_text(write_platform(platform))
        return files


def write_platform(platform: PlatformConfig) -> str:
    text: str = yaml.safe_dump(platform.model_dump(mode="json", exclude_defaults=True))
    return text


class JobProcess:
    """One job in a process of its own."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]):
        self.result_file = folder / "result.json"
        self.output = folder / "output.txt"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'include'}:{ROOT}", **environment},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._descendants: list[psutil.Process] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    def order(self, document: dict[str, Any]) -> None:
        """One line for a process that waits for it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(document).encode() + b"\n")
        self.process.stdin.flush()

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def halted(self) -> bool:
        """Whether it stands at its fault point; an end instead of that is a failure."""
        flags = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
        seen = os.waitid(os.P_PID, self.pid, flags)
        if seen is None:
            return False
        assert seen.si_code == os.CLD_STOPPED, (
            f"ended ({seen.si_status}) before its fault point:\n{self.said()[-3000:]}"
        )
        return True

    def wait_for_halt(self) -> None:
        until(self.halted, f"process {self.pid} halted at its fault point")
        self._descendants = psutil.Process(self.pid).children(recursive=True)

    def kill(self) -> None:
        """SIGKILL to the driver alone: its JVM must see by itself that it is alone."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.process.wait(PATIENCE) == -signal.SIGKILL
        self._close()

    def wake(self) -> None:
        """Let a halted process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def wait(self) -> int:
        """Its exit status."""
        status = self.process.wait(PATIENCE)
        self._close()
        return status

    def wait_measured(self) -> tuple[int, int]:
        """Its exit status, and the most memory it ever had (KB)."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        until(lambda: os.waitid(os.P_PID, self.pid, flags), f"process {self.pid} ended")
        _, status, usage = os.wait4(self.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self._close()
        return self.process.returncode, usage.ru_maxrss

    def result(self) -> JobResult:
        found = read_result(self.result_file)
        assert found is not None, f"no result:\n{self.said()[-3000:]}"
        return found

    def leaves_nothing(self) -> None:
        """Whatever it had started is gone as well."""
        _, alive = psutil.wait_procs(self._descendants, timeout=PATIENCE)
        assert not alive, f"outlived their driver: {alive}"

    def end(self) -> None:
        """For the end of a test, whatever state it is in."""
        if self.process.poll() is None:
            parts = [*psutil.Process(self.pid).children(recursive=True), *self._descendants]
            self.process.kill()
            self.process.wait(PATIENCE)
            for part in parts:
                if part.is_running():
                    part.kill()
        self._close()

    def _close(self) -> None:
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()

    def __enter__(self) -> JobProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


def halt_at(point: str) -> dict[str, str]:
    """The environment in which a process halts at ``point`` (``name`` or ``name:count``)."""
    assert point.partition(":")[0] in faults.POINTS, f"{point} is no fault point"
    return {"TIDEGATE_FAULT": f"{point}@stop"}


def job_arguments(files: Files, folder: Path, run: str, more: Sequence[str]) -> list[str]:
    """The arguments every job process takes."""
    common = ["--pipeline", str(files.pipeline), "--platform", str(files.platform)]
    return [*common, "--run", run, "--result", str(folder / "result.json"), *more]


def capture_process(
    files: Files, folder: Path, run: str, environment: Mapping[str, str] | None = None
) -> JobProcess:
    """Capture as Airflow starts it."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["-m", "tidegate.jobs.capture", *job_arguments(files, folder, run, ())]
    return JobProcess(command, folder, environment or {})


def _short_lived(platform: PlatformConfig) -> PlatformConfig:
    """These JVMs live for seconds: optimising their code costs more than it brings."""
    options = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    spark = platform.spark.model_copy(update={"conf": {**platform.spark.conf, **options}})
    return platform.model_copy(update={"spark": spark})


class SparkJobs:
    """Job processes with a JVM that is up before they are needed.

    A JVM takes ten seconds to start, so :meth:`prepare` starts the next process while the test
    does something else; it then waits for one order: which door of ``spark_jobs/`` to go through,
    with which arguments.
    """

    def __init__(self, folder: Path, platform: PlatformConfig) -> None:
        self._folder = folder
        self._platform = folder / "platform.yaml"
        self._platform.write_text(write_platform(_short_lived(platform)))
        self._count = 0
        self._started: list[JobProcess] = []
        self._spare: JobProcess | None = None

    def run(
        self,
        door: str,
        files: Files,
        run: str,
        more: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> JobProcess:
        process, self._spare = self._spare or self._start(), None
        arguments = job_arguments(files, process.output.parent, run, more)
        order = {"door": str(DOORS / door), "arguments": arguments}
        process.order({**order, "environment": dict(environment or {})})
        return process

    def prepare(self) -> None:
        """Start the next process ahead."""
        self._spare = self._spare or self._start()

    def end(self) -> None:
        for process in self._started:
            process.end()
            process.leaves_nothing()

    def _start(self) -> JobProcess:
        self._count += 1
        folder = self._folder / f"process{self._count}"
        folder.mkdir()
        process = JobProcess(["-m", "tests.faults.waiting_job", str(self._platform)], folder, {})
        self._started.append(process)
        return process
