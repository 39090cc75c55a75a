"""Look at the live source's schema: a plain Python process, no JVM."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.sdk import Context

from tidegate.airflow.lineage import Writes
from tidegate.airflow.operators.capture import TidegateCaptureOperator
from tidegate.jobs.lines import table_lines


class TidegateSchemaOperator(TidegateCaptureOperator):
    """The verdict on every table, in the task log and as XCom.

    :param pipeline_file: the pipeline's YAML.
    :param platform_file: the platform's YAML; None for the defaults.

    Started like capture: the job's lines go to the task log, secrets go by file (I9).
    """

    ui_color = "#eef1fb"
    module: ClassVar[str] = "tidegate.jobs.check_schema"
    writes: ClassVar[Writes] = Writes.NOTHING

    def execute(self, context: Context) -> dict[str, Any]:
        value = super().execute(context)
        for line in table_lines(value):
            self.log.info(line)
        return value
