"""The branch of one batch: made from the exact snapshot whose position was read, published by
``fast_forward``.

That is a compare-and-set on ``main`` that works on every catalog: a stale writer, stopped anywhere
and woken later, cannot publish (I4), and readers see whole batches only (I5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tidegate.config.pipeline import LakeTarget
from tidegate.errors import FatalError, HeldError
from tidegate.lake.catalog import load
from tidegate.names import apply_branch
from tidegate.spark import publish

APPLY_PREFIX: Final = apply_branch("")


@dataclass(frozen=True, slots=True)
class Fence:
    """A branch of ours on top of snapshot ``base``."""

    session: SparkSession
    catalog: Catalog
    target: LakeTarget
    branch: str
    base: int | None

    def open(self) -> None:
        """Make the branch."""
        if self.base is None:
            raise FatalError(
                "apply.no_snapshot",
                f"{self.target.namespace}.{self.target.name} has never been written",
                hint="sweep the table first",
            )
        # From the very snapshot whose position was read: if main moved since, publishing fails.
        publish.create_branch(self.session, self.target, self.branch, base=self.base)

    def reopen(self) -> None:
        """Make the branch anew, without what an attempt wrote."""
        self.drop()
        self.open()

    def drop(self) -> None:
        publish.drop_branch(self.session, self.target, self.branch)

    def publish(self) -> None:
        """Make the branch ``main``; it is gone then."""
        try:
            publish.fast_forward(self.session, self.target, self.branch)
        except HeldError as error:
            raise self.moved() from error

    @property
    def overtaken(self) -> bool:
        """Whether someone else wrote to ``main`` meanwhile."""
        current = reload(self.catalog, self.target).current_snapshot()
        return current is None or current.snapshot_id != self.base

    def moved(self) -> HeldError:
        return HeldError(
            "apply.main_moved",
            f"{self.target.namespace}.{self.target.name} was written by someone else meanwhile;"
            " this batch was not published",
            hint="the next run applies it again from where the table stands",
        )


def drop_leftovers(session: SparkSession, table: Table, target: LakeTarget) -> None:
    """Forget branches of applies that died; the caller holds the lease, so none is in use."""
    for name in table.metadata.refs:
        if name.startswith(APPLY_PREFIX):
            publish.drop_branch(session, target, name)


def reload(catalog: Catalog, target: LakeTarget) -> Table:
    table = load(catalog, target.identifier)
    if table is None:
        raise FatalError(
            "apply.table_missing",
            f"the lake has no table {target.namespace}.{target.name}",
            hint="sweep the table first",
        )
    return table
