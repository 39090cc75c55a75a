"""Conditions that pass by themselves, as Spark's exceptions carry them.

A full disk, too little memory, a locked catalog or a source that restarts reaches Python as a Java
exception, often as the cause of a cause. Only class names, SQL states and fixed words are looked
at, and nothing of a message is repeated: it may quote a row value (I9).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tidegate.errors import RetriableError
from tidegate.lake.catalog import catalog_locked
from tidegate.lake.commits import storage_full

MAX_CAUSES: Final = 16
_FULL: Final = ("No space left on device", "Disk quota exceeded", "File too large", "[SQLITE_FULL]")
_MEMORY: Final = ("java.lang.OutOfMemoryError", "SparkOutOfMemoryError")
_LOCKED: Final = ("[SQLITE_BUSY", "[SQLITE_LOCKED")
DRIVERS: Final = ("org.postgresql.", "org.mariadb.", "java.sql.SQL")
_LOST: Final = ("08", "53", "57P", "58")  # connection, resources, shutdown, system
_LOCK_TIMEOUT: Final = "55P03"


def passing(error: BaseException) -> RetriableError | None:
    """What to say if trying again later may help; None if that is not known."""
    for throwable in throwables(error):
        # A failed task's exception is quoted in the message of the job's, wherever the task ran.
        said = f"{throwable.getClass().getName()}: {throwable.getMessage() or ''}"
        found = _source(throwable) or _machine(said)
        if found is not None:
            return found
    return None


def throwables(error: BaseException) -> Iterator[Any]:
    """Java exceptions behind a Python one, outermost first."""
    current: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if current is None:
            return
        # Py4J's own errors and those PySpark has translated keep the original under other names.
        throwable = getattr(current, "java_exception", None) or getattr(current, "_origin", None)
        for _ in range(MAX_CAUSES):
            if throwable is None:
                break
            yield throwable
            throwable = throwable.getCause()
        current = current.__cause__ or current.__context__


def _machine(message: str) -> RetriableError | None:
    if any(word in message for word in _FULL):
        return storage_full()
    if any(word in message for word in _LOCKED):
        return catalog_locked()
    if any(word in message for word in _MEMORY):
        return out_of_memory()
    return None


def out_of_memory() -> RetriableError:
    return RetriableError(
        "job.out_of_memory",
        "Spark ran out of memory",
        hint="nothing half done is visible, and the run is tried again; if it stays: raise"
        " spark.driver_memory, or on a cluster spark.executor.memory in spark.conf, or lower"
        " spark.table_parallelism",
    )


def _source(throwable: Any) -> RetriableError | None:
    if not str(throwable.getClass().getName()).startswith(DRIVERS):
        return None
    state = str(throwable.getSQLState() or "")
    if state == _LOCK_TIMEOUT:
        return RetriableError(
            "source.locked",
            "a table of the source stayed locked by another session while it was read",
            hint="the sweep gave way (its locks are gone) and goes on where it was; who locks the"
            " table for so long: TRUNCATE, VACUUM FULL, a rewriting ALTER?",
        )
    if state.startswith(_LOST):
        return RetriableError(
            "source.unreachable",
            f"the connection to the source was lost (SQL state {state})",
            hint="is the server up and reachable from here? The next attempt goes on from here",
        )
    return None
