"""What may be said about an exception nobody expected.

Messages of Spark, JDBC and Python exceptions can quote row values (``CAST_INVALID_INPUT: the value
'…'``), so they stay out of logs and results (I9). Class names, Spark's error condition, stack
frames, and the messages of classes that only speak about machines are kept.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any, Final

from tidegate.errors import (
    Decision,
    RetriableError,
    TidegateError,
    UnexpectedError,
    decide,
)
from tidegate.jobs.passing import DRIVERS, passing, throwables
from tidegate.jobs.refused import refused

MAX_CAUSES: Final = 6
_MACHINE_MESSAGES: Final = (
    "java.io.",
    "java.net.",
    "java.nio.file.",
    "java.lang.OutOfMemoryError",
    "java.lang.ClassNotFoundException",
    "java.lang.NoClassDefFoundError",
    "org.sqlite.",
    "org.apache.iceberg.exceptions.",
    "org.apache.hadoop.fs.",
)


def as_tidegate_error(error: BaseException) -> TidegateError:
    """The error as the result file carries it."""
    if isinstance(error, TidegateError):
        return error
    known = passing(error) or refused(throwables(error))
    if known is not None:
        return known
    if decide(error) is Decision.RETRY:
        return RetriableError(
            "job.connection",
            f"a connection broke: {describe(error)}",
            hint="the run is tried again; if it stays, check network and servers",
        )
    return UnexpectedError(
        "job.unexpected",
        f"an error nobody expected: {describe(error)}",
        hint="the frames are in the task log; please report it",
    )


def describe(error: BaseException) -> str:
    """Class names along the causes, with messages only where they cannot hold a row value."""
    return " ← ".join(_names(error))


def frames(error: BaseException) -> list[str]:
    """Where it happened: files, lines and functions, no values."""
    return [line.rstrip() for line in traceback.format_tb(error.__traceback__)]


def _names(error: BaseException) -> Iterator[str]:
    current: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if current is None:
            return
        yield _python_name(current)
        yield from _java_names(
            getattr(current, "java_exception", None) or getattr(current, "_origin", None)
        )
        current = current.__cause__ or current.__context__


def _python_name(error: BaseException) -> str:
    if isinstance(error, TidegateError):
        return str(error)
    name = type(error).__name__
    condition = getattr(error, "getCondition", None)
    if callable(condition) and condition():
        return f"{name} [{condition()}]"
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: {error.strerror}"
    return name


def _java_names(throwable: Any) -> Iterator[str]:
    for _ in range(MAX_CAUSES):
        if throwable is None:
            return
        name = str(throwable.getClass().getName())
        message = throwable.getMessage()
        spoken = message and name.startswith(_MACHINE_MESSAGES)
        state = throwable.getSQLState() if name.startswith(DRIVERS) else None
        yield f"{name}: {message}" if spoken else f"{name} [{state}]" if state else name
        throwable = throwable.getCause()
