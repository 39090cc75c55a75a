"""Snapshot properties of what a session writes, and their read-back (I1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyspark.sql import SparkSession

from tidegate.errors import FatalError
from tidegate.lake.positions import summary

_PREFIX: Final = "spark.sql.iceberg.snapshot-property."


@contextmanager
def stamped(session: SparkSession, properties: Mapping[str, str]) -> Iterator[None]:
    """Every commit of ``session`` within the block carries ``properties``.

    Session configuration is shared by the session's threads: use one session per thread
    (:class:`~tidegate.spark.pool.SessionPool`). A metadata-only ``DELETE`` drops the properties.
    """
    for key, value in properties.items():
        session.conf.set(_PREFIX + key, value)
    try:
        yield
    finally:
        for key in properties:
            session.conf.unset(_PREFIX + key)


def verify_stamp(table: Table, ref: str | None, properties: Mapping[str, str]) -> dict[str, str]:
    """The summary of the ref's snapshot; fatal unless it carries exactly ``properties``."""
    snapshot = table.metadata.snapshot_by_name(ref or MAIN_BRANCH)
    found = {} if snapshot is None else summary(snapshot)
    wrong = sorted(key for key, value in properties.items() if found.get(key) != value)
    if wrong:
        name = ".".join(table.name())
        raise FatalError(
            "lake.stamp_lost",
            f"the snapshot just written to {name} does not carry {', '.join(wrong)}",
            hint="another writer wrote to this table at the same time; nothing was published",
        )
    return found
