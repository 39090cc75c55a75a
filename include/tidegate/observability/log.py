"""Structured logs: one line per event, a message and fields with constant names.

``event(logger, "table applied", table=…, rows=…)``: fields are keyword
arguments whose names must be in :data:`KEYS`, so that a misspelt or new key is seen in review.
Values are identifiers, counts and positions; never a row value, never a secret (I9).
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from tidegate.redaction import redacted, redacted_within

KEYS: Final[frozenset[str]] = frozenset(
    {
        "pipeline",
        "table",
        "tables",
        "run",
        "stage",
        "step",
        "status",
        "position",
        "snapshot",
        "branch",
        "chunk",
        "rows",
        "bytes",
        "files",
        "transactions",
        "commits",
        "done",
        "total",
        "unit",
        "rate",
        "left_seconds",
        "seconds",
        "attempt",
        "wait_seconds",
        "code",
        "coverage",
        "hint",
        "reason",
        "actor",
        "owner",
        "slot",
        "server",
        "facts",
        "subject",
        "previous_version",
        "new_version",
        "schema_id",
        "compatible",
        "total_lag",
        "partitions",
        "sink_id",
    }
)

ROOT: Final = "tidegate"
FORMAT_VARIABLE: Final = "TIDEGATE_LOG_FORMAT"
"""``json`` for one JSON object per line; anything else for lines that people read."""
_FIELDS: Final = "tidegate_fields"


def get(name: str) -> logging.Logger:
    """The logger of a module; pass ``__name__``."""
    return logging.getLogger(name)


def event(
    logger: logging.Logger, message: str, /, level: int = logging.INFO, **fields: Any
) -> None:
    """Log ``message`` with fields. A key outside :data:`KEYS` is a programming error."""
    unknown = fields.keys() - KEYS
    if unknown:
        raise KeyError(f"not a log key: {', '.join(sorted(unknown))}")
    if logger.isEnabledFor(level):
        # Here, not in a formatter: under Airflow the formatter is not ours.
        extra = {_FIELDS: redacted_within(fields)}
        logger.log(level, redacted(message), extra=extra, stacklevel=2)


def for_machines() -> bool:
    """Whether somebody collects the lines: whoever asks for JSON wants every event."""
    return os.environ.get(FORMAT_VARIABLE) == "json"


def setup(
    *, json_lines: bool | None = None, level: int = logging.INFO, stream: TextIO | None = None
) -> None:
    """Send Tidegate's logs to ``stream`` (stderr). For CLIs and jobs; Airflow has its own.

    Lines for people, or JSON: by default as :data:`FORMAT_VARIABLE` says.
    """
    wanted = for_machines() if json_lines is None else json_lines
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if wanted else LineFormatter())
    logger = logging.getLogger(ROOT)
    for old in list(logger.handlers):
        logger.removeHandler(old)
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields an event was logged with."""
    fields: dict[str, Any] = getattr(record, _FIELDS, {})
    return fields


class LineFormatter(logging.Formatter):
    """``12:00:00 INFO  message  key=value …`` for people."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        pairs = "".join(f"  {key}={value}" for key, value in fields_of(record).items())
        line = f"{at} {record.levelname:<5} {record.getMessage()}{pairs}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return redacted(line)


class JsonFormatter(logging.Formatter):
    """One JSON object per line for machines."""

    def format(self, record: logging.LogRecord) -> str:
        body: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
            **fields_of(record),
        }
        if record.exc_info:
            body["exception"] = redacted(self.formatException(record.exc_info))
        return json.dumps(body, default=str)
