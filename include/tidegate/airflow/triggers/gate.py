"""Wait in the triggerer until a table's gate opens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidegate.airflow.gates import GateView, read_gates


class TableGateTrigger(BaseTrigger):
    """Polls the gate journal; fires once, with ``open`` true or, at the deadline or
    when the pipeline is stopped, false.

    What is serialized into Airflow's database are paths, names and times, never a secret (I9): the
    triggerer reads the files itself.

    :param deadline: UNIX time, so that a restarted triggerer does not begin the wait anew.
    """

    def __init__(
        self,
        pipeline_file: str,
        platform_file: str | None,
        table: str,
        poll_seconds: float,
        deadline: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline_file = pipeline_file
        self.platform_file = platform_file
        self.table = table
        self.poll_seconds = poll_seconds
        self.deadline = deadline

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("pipeline_file", "platform_file", "table", "poll_seconds", "deadline")
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        return path, {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        said = ""
        while True:
            view = await asyncio.to_thread(self._look)
            if view.text != said:
                said = view.text
                self.log.info(said)
            left = self.deadline - time.time()
            if view.open or view.stopped or left <= 0:
                event: Any = {"open": view.open, "stopped": view.stopped, "text": view.text}
                yield TriggerEvent(event)  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(min(self.poll_seconds, left))

    def _look(self) -> GateView:
        return read_gates(self.pipeline_file, self.platform_file, [self.table])[self.table]
