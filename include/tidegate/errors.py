"""Every error Tidegate raises, grouped by how one recovers from it.

An error has a stable ``code`` (``area.reason``), a message that says what happened, and a
``hint`` that says what to do next. :func:`decide` is the only place that turns an error into
retry, wait or stop; the CLI and the Airflow operators both ask it.
"""

from __future__ import annotations

import enum
from typing import ClassVar, Final

from tidegate.redaction import redacted

STOPPED_CODE: Final = "pipeline.stopped"
"""Somebody stopped the pipeline (``lake.pauses``): by this every door knows that a job ended
quietly, not wrongly."""


class Decision(enum.Enum):
    """What a caller does about an error."""

    RETRY = "retry"  # the same call may succeed later: back off and try again
    WAIT = "wait"  # a person or another run must act first; nothing is broken
    STOP = "stop"  # trying again cannot help


class ExitCode(enum.IntEnum):
    """Process exit codes, the same for the CLI and for jobs."""

    OK = 0
    RUNTIME = 1
    VALIDATION = 2
    ENVIRONMENT = 3


class TidegateError(Exception):
    """Root of all errors. Never carries a row value or a secret (I9)."""

    decision: ClassVar[Decision] = Decision.STOP
    exit_code: ClassVar[ExitCode] = ExitCode.RUNTIME

    def __init__(self, code: str, message: str, *, hint: str) -> None:
        self.code = code
        # What is quoted may hold an address, and that a password: never in an error.
        self.message = redacted(message)
        self.hint = redacted(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} [{self.code}] → {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries (job result files, Airflow): keep code and hint.
        return (_rebuild, (type(self), self.code, self.message, self.hint))

    def to_dict(self) -> dict[str, str]:
        """The form written to job results, JSON output and problem documents."""
        return {
            "kind": type(self).__name__,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
        }


class ConfigError(TidegateError):
    """A file or an argument is wrong: a person edits it."""

    exit_code = ExitCode.VALIDATION


class SetupError(TidegateError):
    """The machine lacks something: Java, a package, a port, a directory."""

    exit_code = ExitCode.ENVIRONMENT


class RetriableError(TidegateError):
    """A passing condition: network, lock, a server that restarts."""

    decision = Decision.RETRY


class HeldError(TidegateError):
    """A gate, lease or policy holds the work back; it goes on when that is lifted."""

    decision = Decision.WAIT


class DataError(TidegateError):
    """A value or row cannot be taken exactly."""


class FatalError(TidegateError):
    """History is missing or contradicts itself; going on would lose or double data."""


class UnexpectedError(FatalError):
    """It failed in a way that Tidegate does not know; what was durable before still is."""


_KINDS: dict[str, type[TidegateError]] = {
    kind.__name__: kind
    for kind in (
        ConfigError,
        SetupError,
        RetriableError,
        HeldError,
        DataError,
        FatalError,
        UnexpectedError,
    )
}


def _rebuild(kind: type[TidegateError], code: str, message: str, hint: str) -> TidegateError:
    return kind(code, message, hint=hint)


def from_dict(data: dict[str, str]) -> TidegateError:
    """The inverse of :meth:`TidegateError.to_dict`."""
    kind = _KINDS.get(data["kind"], FatalError)
    return kind(data["code"], data["message"], hint=data["hint"])


def decide(error: BaseException) -> Decision:
    """Retry, wait or stop; the one place that decides."""
    if isinstance(error, TidegateError):
        return error.decision
    if isinstance(error, (ConnectionError, TimeoutError)):
        return Decision.RETRY
    return Decision.STOP


def exit_code(error: BaseException) -> ExitCode:
    """The exit code a process ends with after ``error``."""
    return error.exit_code if isinstance(error, TidegateError) else ExitCode.RUNTIME
