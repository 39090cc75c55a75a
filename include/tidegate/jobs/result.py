"""What a job process hands back to whoever started it: one JSON file, written whole or not at all.

Counts, positions, states and errors only; never a row value or a secret (I9).
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tidegate.envelope.position import Position
from tidegate.errors import TidegateError, from_dict

RESULT_VERSION: Final = 1


@dataclasses.dataclass(frozen=True, slots=True)
class JobResult:
    """How one run of one job ended."""

    job: str
    run: str
    seconds: float
    result: dict[str, Any]
    error: TidegateError | None = None

    @property
    def tables(self) -> list[dict[str, Any]]:
        """One entry per table the job looked at, if it works by table."""
        tables = self.result.get("tables")
        return tables if isinstance(tables, list) else []


def write_result(path: Path, outcome: JobResult) -> None:
    """Write beside the target and rename, so that a reader never sees half a result."""
    document = {
        "version": RESULT_VERSION,
        "job": outcome.job,
        "run": outcome.run,
        "seconds": round(outcome.seconds, 3),
        "result": outcome.result,
        "error": outcome.error.to_dict() if outcome.error else None,
    }
    staging = path.with_name(path.name + ".part")
    staging.write_text(json.dumps(document), encoding="utf-8")
    staging.replace(path)


def read_result(path: Path) -> JobResult | None:
    """The result, or None where the job died before it could write one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    error = data["error"]
    return JobResult(
        job=data["job"],
        run=data["run"],
        seconds=data["seconds"],
        result=data["result"],
        error=from_dict(error) if error else None,
    )


def plain(value: Any) -> Any:
    """Job results are dataclasses that hold enums, positions and times; JSON wants none of them."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, TidegateError):
        return value.to_dict()
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) and not hasattr(value, "_fields"):
        return [plain(item) for item in value]
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _fields(value: Any) -> Any:
    if isinstance(value, Position):
        return str(value)
    names = [field.name for field in dataclasses.fields(value)]
    return {name: plain(getattr(value, name)) for name in names}
