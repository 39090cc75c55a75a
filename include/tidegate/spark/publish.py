"""Branches of lake tables: create, stamp, fast-forward, drop.

A branch is where a table's next state is built out of readers' sight; ``fast_forward`` makes it
``main`` in one compare-and-set of the catalog's pointer. It refuses if ``main`` moved since the
branch was made, which is the fence against stale writers on every catalog (I4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F

from tidegate.config.pipeline import LakeTarget
from tidegate.errors import FatalError, HeldError
from tidegate.names import CATALOG, quote_spark

MAIN: Final = "main"

Identifier = tuple[str, str] | LakeTarget
"""An Iceberg table: a lake target, or namespace and name as PyIceberg takes them."""
_SPARK_SESSION: Final = "org.apache.spark.sql.classic.SparkSession"
_SPARK_UTIL: Final = "org.apache.iceberg.spark.Spark3Util"
"""Asked for by their whole names: name by name, each package would be looked for as a class, in
every jar there is."""
_SNAPSHOT_PROPERTY: Final = "snapshot-property."


@dataclass(frozen=True, slots=True)
class Written:
    """A commit."""

    snapshot_id: int
    rows: int  # added


def _parts(table: Identifier) -> tuple[str, str]:
    return table.identifier if isinstance(table, LakeTarget) else table


def spark_name(table: Identifier, branch: str | None = None) -> str:
    """The table, or one of its branches, in Spark SQL."""
    parts = [CATALOG, *_parts(table)]
    if branch is not None:
        parts.append(f"branch_{branch}")
    return quote_spark(*parts)


def procedure_name(table: Identifier) -> str:
    """The table as an argument of a ``CALL lake.system.…`` procedure (a quoted SQL literal)."""
    return literal(quote_spark(*_parts(table)))


def dotted(table: Identifier) -> str:
    """The table's name in messages."""
    return ".".join(_parts(table))


def literal(text: str) -> str:
    """A Spark SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def create_branch(
    session: SparkSession,
    table: Identifier,
    branch: str,
    *,
    base: int | None = None,
    retain_seconds: float | None = None,
) -> None:
    """Branch off ``main``, or off snapshot ``base``. With ``retain_seconds`` its snapshots are kept
    as long as the branch may live, so that expiry cannot cut the line between it and ``main``."""
    loaded = _loaded(session, table)
    if base is None and loaded.currentSnapshot() is None:
        loaded.newFastAppend().toBranch(branch).commit()  # a branch points to a snapshot
    change = loaded.manageSnapshots()
    if loaded.snapshot(branch) is None:
        change = change.createBranch(branch, base or loaded.currentSnapshot().snapshotId())
    if retain_seconds is not None:
        millis = max(60, math.ceil(retain_seconds)) * 1000
        change = change.setMaxRefAgeMs(branch, millis).setMaxSnapshotAgeMs(branch, millis)
    change.commit()


def drop_branch(session: SparkSession, table: Identifier, branch: str) -> None:
    """Forget a branch, if there is one; what only it held is removed by the next expiry."""
    loaded = _loaded(session, table)
    if loaded.snapshot(branch) is not None:
        loaded.manageSnapshots().removeBranch(branch).commit()


def refs(session: SparkSession, table: Identifier) -> dict[str, int]:
    """Snapshot id per branch and tag; ``main`` is absent while the table is empty."""
    found = _loaded(session, table).refs()
    return {name: found[name].snapshotId() for name in found}


def summary(session: SparkSession, table: Identifier, snapshot_id: int) -> dict[str, str]:
    snapshot = _loaded(session, table).snapshot(snapshot_id)
    if snapshot is None:
        raise FatalError(
            "lake.snapshot_missing",
            f"{dotted(table)} has no snapshot {snapshot_id}",
            hint="list them with `tidegate lakehouse snapshots`",
        )
    return dict(snapshot.summary())


def merges_on_read(session: SparkSession, table: Identifier) -> bool:
    """Whether a MERGE writes delete files, rather than data files anew (Iceberg's default)."""
    mode = _loaded(session, table).properties().getOrDefault("write.merge.mode", "copy-on-write")
    return bool(mode == "merge-on-read")


def _loaded(session: SparkSession, table: Identifier) -> Any:
    """Iceberg's own table, as the catalog has it now: the same through SQL plans a query, and a
    look at its metadata tables starts a Spark job, for a few names."""
    jvm: Any = session._jvm  # there is no public way to it
    # Iceberg asks the thread's active session for the catalog, whichever session it is given.
    getattr(jvm, _SPARK_SESSION).setActiveSession(session._jsparkSession)
    loaded = getattr(jvm, _SPARK_UTIL).loadIcebergTable(session._jsparkSession, spark_name(table))
    loaded.refresh()
    return loaded


def append(
    frame: DataFrame,
    table: Identifier,
    *,
    branch: str | None,
    properties: Mapping[str, str],
    options: Mapping[str, str] | None = None,
) -> Written:
    """Append in one commit that carries ``properties``, and read them back.

    The properties travel as write options of this statement, not as session configuration, which
    concurrent statements of one session would share.
    """
    _writer(frame, table, branch, properties, options).append()
    return check_head(frame.sparkSession, table, branch, properties)


def replace(
    frame: DataFrame,
    table: Identifier,
    *,
    branch: str,
    properties: Mapping[str, str],
    options: Mapping[str, str] | None = None,
) -> Written:
    """Like :func:`append`, with every older row of the branch gone in the same commit.

    (A DELETE before an append would be a snapshot of its own, and Spark's metadata-only DELETE
    drops snapshot properties.)
    """
    _writer(frame, table, branch, properties, options).overwrite(F.lit(True))
    return check_head(frame.sparkSession, table, branch, properties)


def _writer(
    frame: DataFrame,
    table: Identifier,
    branch: str | None,
    properties: Mapping[str, str],
    options: Mapping[str, str] | None,
) -> DataFrameWriterV2:
    writer = frame.writeTo(spark_name(table, branch))
    for key, value in (options or {}).items():
        writer = writer.option(key, value)
    for key, value in properties.items():
        writer = writer.option(_SNAPSHOT_PROPERTY + key, value)
    return writer


def stamp(
    session: SparkSession, table: Identifier, *, branch: str | None, properties: Mapping[str, str]
) -> int:
    """An empty commit that carries ``properties`` and no rows."""
    change = _loaded(session, table).newFastAppend().toBranch(branch or MAIN)
    for key, value in properties.items():
        change = change.set(key, value)
    change.commit()
    return check_head(session, table, branch, properties).snapshot_id


def check_head(
    session: SparkSession, table: Identifier, branch: str | None, properties: Mapping[str, str]
) -> Written:
    """The ref's snapshot; fatal if its summary does not carry ``properties`` (I1)."""
    head = _loaded(session, table).snapshot(branch or MAIN)
    found = head.summary()
    wrong = sorted(key for key, value in properties.items() if found.get(key) != value)
    if wrong:
        raise FatalError(
            "lake.stamp_lost",
            f"snapshot {head.snapshotId()} of {dotted(table)} does not carry {', '.join(wrong)}",
            hint="another writer wrote to this branch; stop it and run the sweep again",
        )
    return Written(head.snapshotId(), int(found.get("added-records") or "0"))


def fast_forward(session: SparkSession, table: Identifier, branch: str) -> int:
    """Make ``branch`` the table's ``main`` and forget its name; the snapshot's id (I4, I5)."""
    loaded = _loaded(session, table)
    head = loaded.snapshot(branch)
    try:
        change = loaded.manageSnapshots().fastForwardBranch(MAIN, branch)
        change.removeBranch(branch).commit()
    except (PySparkException, Py4JJavaError) as error:
        if not _refused(error):
            raise
        raise HeldError(
            "sweep.main_moved",
            f"{dotted(table)} was written by someone else since branch {branch} was made, or the"
            " branch is gone; nothing was published",
            hint="see `tidegate gate show` for who writes this table, then sweep it again",
        ) from error
    return int(head.snapshotId())


def _refused(error: Exception) -> bool:
    text = str(error)
    return "not an ancestor" in text or "CommitFailedException" in text or "Ref does not" in text
