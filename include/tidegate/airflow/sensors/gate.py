"""A table's gate as a sensor that holds no worker while it waits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowSkipException

from tidegate.airflow.gates import read_gates
from tidegate.airflow.triggers.gate import TableGateTrigger

POLL_SECONDS: Final = 5.0
"""One metadata read; a sweep takes minutes."""


class TableGateSensor(BaseSensorOperator):
    """Succeeds when the table's gate is open; skipped, with the reason, after ``wait_seconds``
    or at once if the pipeline is stopped.

    :param table: source table (templated).
    :param wait_seconds: give up after this long; what comes later takes the next run.
    :param poll_seconds: how often the triggerer looks.
    """

    template_fields: Sequence[str] = ("table",)
    ui_color = "#fff4d6"

    def __init__(
        self,
        *,
        pipeline_file: str,
        table: str,
        wait_seconds: float,
        platform_file: str | None = None,
        poll_seconds: float = POLL_SECONDS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file
        self.platform_file = platform_file
        self.table = table
        self.wait_seconds = wait_seconds
        self.poll_seconds = poll_seconds

    def execute(self, context: Context) -> str:
        view = read_gates(self.pipeline_file, self.platform_file, [self.table])[self.table]
        self.log.info(view.text)
        if view.stopped:
            raise AirflowSkipException(view.text)
        if view.open:
            return self.table
        trigger = TableGateTrigger(
            self.pipeline_file,
            self.platform_file,
            self.table,
            self.poll_seconds,
            time.time() + self.wait_seconds,
        )
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> str:
        """Back from the triggerer."""
        self.log.info(event["text"])
        if event.get("stopped"):
            raise AirflowSkipException(str(event["text"]))
        if not event["open"]:
            raise AirflowSkipException(
                f"{event['text']}: still closed after {self.wait_seconds:.0f} s."
                " Its changes wait in the change log; the next run looks again."
            )
        return self.table
