"""What a run could not write, as the platform specification's log events."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final, Protocol

from tidegate.config.pipeline import PipelineConfig
from tidegate.errors import TidegateError
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.schema_hold import CODES as SCHEMA_CODES
from tidegate.observability import events, log

_LOG = log.get(__name__)
_WRONG: Final = ("failed", "held")
"""Others wait for another writer: nothing was tried."""
_LETTERS_HINT: Final = "`tidegate dead-letters list` says which rows and why"


class Result(Protocol):
    """One table's part of an apply or a sweep."""

    @property
    def table(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def parked(self) -> int: ...
    @property
    def error(self) -> TidegateError | None: ...


def say_errors(
    pipeline: PipelineConfig, letters: DeadLetters, run: str, results: Iterable[Result]
) -> None:
    """One ERROR per table whose write failed, as a whole or for some rows (``rows``: those that
    became dead letters), or whose schema changed in a way the lake does not follow."""
    for result in results:
        error, code = result.error, None
        told: dict[str, Any] = {
            "pipeline": pipeline.pipeline_id,
            "table": result.table,
            "run": run,
        }
        if error is not None:
            code = error.code
            told |= {"code": code, "hint": error.hint, "reason": error.message}
        if code in SCHEMA_CODES:
            log.event(_LOG, events.SCHEMA_INCOMPATIBLE, logging.ERROR, **told)
            continue
        if code is None and result.parked:
            told |= {"code": letters.worst_code(result.table, run), "hint": _LETTERS_HINT}
        elif code is None or result.status not in _WRONG:
            continue
        told |= {"sink_id": pipeline.lake_id, "rows": result.parked}
        log.event(_LOG, events.SINK_WRITE_ERROR, logging.ERROR, **told)
