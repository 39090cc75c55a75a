"""Rows that dead letters keep back from a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.jobs.verdict import TableVerdict
from tidegate.lake.dead_letter_fold import Letter
from tidegate.schema.table import TableSchema
from tidegate.spark.letters import read_keys, typed_keys, unheld_keys
from tidegate.spark.selection import Selection, Without
from tidegate.spark.verify import Comparison

if TYPE_CHECKING:
    from tidegate.spark.session import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class KeptBack:
    """They differ, of course, and mended they would be changed again by letters that know nothing
    of it. So they are left out, and are proven by nothing."""

    letters: int
    keys: DataFrame
    unheld: DataFrame | None
    """Keys that the lake cannot hold, in the source's text; None: there are none."""
    buckets: frozenset[int]

    @classmethod
    def of(
        cls,
        session: SparkSession,
        letters: Sequence[Letter],
        schema: TableSchema,
        selection: Selection,
    ) -> KeptBack:
        keys = {key for letter in letters for key in letter.keys}
        unheld = unheld_keys(session, schema, keys)
        places = read_keys(session, schema, keys).select(selection.bucket(schema).alias("bucket"))
        return cls(
            len(letters),
            typed_keys(session, schema, keys),
            None if unheld.isEmpty() else unheld,
            frozenset(row.bucket for row in places.distinct().collect()),
        )

    def without(self, selection: Selection) -> Without:
        """``selection`` but for these rows."""
        return Without(selection, self.keys, self.unheld)

    def noted(self, found: Comparison, verdict: TableVerdict) -> tuple[Comparison, TableVerdict]:
        """What was found, with what was left out."""
        reason = f"{self.letters} dead letters wait, and their rows were not compared"
        return (
            replace(found, left_out=self.buckets),
            replace(verdict, waiting=self.letters, reason=verdict.reason or reason),
        )
