"""Run capture: a plain Python process, no JVM."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from airflow.sdk import BaseOperator, Context

from tidegate.airflow.handover import handover, job_environment
from tidegate.airflow.hooks.source import source_secrets
from tidegate.airflow.lineage import Writes, task_lineage
from tidegate.airflow.operators.job import caller_of, run_name
from tidegate.airflow.outcome import OnHeld, settle
from tidegate.airflow.processes import end_tree
from tidegate.jobs.lines import details


class TidegateCaptureOperator(BaseOperator):
    """Read the source's log into the change log, up to where it stands now.

    :param pipeline_file: the pipeline's YAML.
    :param platform_file: the platform's YAML; None for the defaults.
    :param on_held: what to do when another capture of the pipeline is at work.

    The job's lines go to the task log as they come. Secrets go by file (I9).
    """

    template_fields: Sequence[str] = ()
    ui_color = "#e6f4f1"
    module: ClassVar[str] = "tidegate.jobs.capture"
    writes: ClassVar[Writes] = Writes.LOG

    def __init__(
        self,
        *,
        pipeline_file: str,
        platform_file: str | None = None,
        on_held: OnHeld = OnHeld.SKIP,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file
        self.platform_file = platform_file
        self.on_held = on_held
        self._process: subprocess.Popen[str] | None = None
        self._ended = 0
        self._value: dict[str, Any] | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        _, secrets = source_secrets(self.pipeline_file)
        with handover() as files:
            files.write_secrets(secrets)
            arguments = files.arguments(self.pipeline_file, self.platform_file, run_name(context))
            command = [sys.executable, "-m", self.module, *arguments]
            status = self._run(command, job_environment(caller_of(context)))
            died = f"{self.task_id} ended with status {status}"
            value = self._value = settle(files.result(), on_held=self.on_held, died=died)
        self.log.info(details(value))
        return value

    def on_kill(self) -> None:
        """Runs inside a signal handler: no logging here (see TidegateSparkHook.on_kill)."""
        if self._process is not None and self._process.poll() is None:
            self._ended = end_tree(self._process.pid)

    def get_openlineage_facets_on_start(self) -> Any:
        return task_lineage(self.pipeline_file, self.writes)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        return task_lineage(self.pipeline_file, self.writes, value=self._value)

    def _run(self, command: list[str], environment: dict[str, str]) -> int:
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
        )
        with self._process as process:
            for line in process.stdout or ():
                self.log.info(line.rstrip())
        if self._ended:
            self.log.info("Ended %s: %d processes", self.task_id, self._ended)
        return process.returncode
