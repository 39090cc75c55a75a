"""Rows of a sweep that the lake cannot take: dead letters at the cut (I7).

They are left out of what is written, read once more as the log would have sent them, and durable
before the branch is published, under the batch that its snapshot will carry. Later changes of
those rows wait behind them as behind any letter. Most sweeps have none, and read nothing twice.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tidegate import faults
from tidegate.config.pipeline import LakeTarget
from tidegate.config.platform import DlqConfig
from tidegate.connectors.cut import Chunk, Survey, lost_flag
from tidegate.envelope.change import Op
from tidegate.envelope.dead_letter import Key, Parked, Role
from tidegate.envelope.log_rows import too_large
from tidegate.errors import DataError
from tidegate.lake.dead_letters import DeadLetters
from tidegate.observability.frames import code_frames
from tidegate.schema.table import TableSchema
from tidegate.spark.audit import column as named
from tidegate.spark.casts import cast
from tidegate.spark.letters import typed_keys
from tidegate.spark.parking import SMALL_BATCH, cast_failed, makes_letters, value_too_large
from tidegate.spark.sweep_read import Reading, Seen, check_exact, told

_AFTER: Final = "_cdc_after"
_WRONG: Final = "_cdc_wrong"
_LOST: Final = "_cdc_lost"


@dataclass(slots=True)
class SweepParking:
    """The dead letters of one table's sweep. The table's lease is held."""

    reading: Reading
    source_schema: TableSchema
    """As the history has it: slots of a letter are its columns."""
    target: LakeTarget
    cut_time: datetime
    letters: DeadLetters
    limits: DlqConfig
    run: str
    batch: str = field(default_factory=lambda: uuid.uuid4().hex)
    """What the sweep does to letters counts while a snapshot with this id is part of ``main``."""
    keys: list[Key] = field(default_factory=list)
    """Of the rows that were set aside; in a table without a key they are all alike."""
    _superseded: bool = False
    _alike: Counter[str] = field(default_factory=Counter)

    def supersede(self) -> None:
        """What waits so far is moot with this sweep; before any letter of its own, for that would
        be moot as well."""
        if not self._superseded:
            self.letters.supersede(self.target.source, self.batch, self.run)
            self._superseded = True

    def park_large(self) -> None:
        """Set the rows aside whose values are too large, which no chunk reads."""
        large = self.reading.too_large_sql
        if large is None:
            return
        counts = self.reading.survey.too_large
        if not self._enabled:
            self.refuse_large()
        self._check_limits(max(counts.values()), counts)
        self._park(self._large(large), counts)

    def refuse_large(self) -> None:
        """For a part of a table, which makes no letters."""
        if self.reading.survey.too_large:
            raise _too_large(self.target, self.reading.survey.too_large)

    def park(self, chunks: Sequence[Chunk], seen: Seen) -> None:
        """Set the rows of ``chunks`` aside that failed as they were read."""
        if not seen.failed_rows:
            return
        if not self._enabled:
            check_exact(self.target.source, seen)
        self._check_limits(seen.failed_rows, seen.failed)
        self._park(self._failing(chunks), seen.failed)

    def left(self, survey: Survey) -> Survey:
        """What the source counted, without the rows that were set aside: what must be published."""
        facts = {
            name: replace(known, total=known.total - self._sum(name))
            for name, known in survey.keys.items()
        }
        return replace(survey, rows=survey.rows - len(self.keys), keys=facts)

    def without(self, rows: DataFrame) -> DataFrame:
        """``rows`` of the lake but those whose letters wait."""
        if not self.keys:
            return rows
        keys = typed_keys(self.reading.session, self.reading.schema, self.keys)
        return rows.join(F.broadcast(keys), keys.columns, "left_anti")

    @property
    def _enabled(self) -> bool:
        keyed = bool(self.source_schema.key_columns)
        return makes_letters(self.target, self.limits, keyed=keyed)

    def _sum(self, name: str) -> int:
        place = [column.name for column in self.source_schema.key_columns].index(name)
        return sum(int(key[place] or 0) for key in self.keys)

    def _park(self, rows: DataFrame, counts: Mapping[str, int]) -> None:
        found = rows.limit(self.limits.max_dead_letters + 1).collect()
        self._check_limits(len(found), counts)
        parked = [self._letter(row) for row in found]
        self.supersede()
        self.letters.route(self.target.source, self.batch, self.run, parked)
        self.keys += [one.key for one in parked]
        faults.point("sweep.after_letters")

    def _failing(self, chunks: Sequence[Chunk]) -> DataFrame:
        """Failing rows of ``chunks`` as the log prints them, and the columns that cannot take
        them."""
        schema, cut = self.source_schema, self.reading.cut
        rows = self.reading.query(
            cut.text_sql(schema.table, schema, self.reading.fitting(chunk)) for chunk in chunks
        )
        failed = (
            F.when(cast(column, named(column.name)).failed, F.lit(column.name))
            for column in self.reading.casts
        )
        wrong = rows.select(self._after(), F.array_compact(F.array(*failed)).alias(_WRONG))
        return wrong.where(F.size(_WRONG) > 0)

    def _large(self, predicate: str) -> DataFrame:
        """Rows with values that are too large, without those, and which they are."""
        schema, large = self.source_schema, self.reading.survey.too_large
        slots = {slot: c for slot, c in enumerate(schema.columns) if c.name in large}
        sql = self.reading.cut.text_sql(schema.table, schema, predicate, too_large=large)
        lost = (F.when(F.col(lost_flag(slot)), F.lit(slot)) for slot in slots)
        return self.reading.query([sql]).select(
            self._after(), F.array_compact(F.array(*lost)).alias(_LOST)
        )

    def _after(self) -> SparkColumn:
        return F.array(*(named(c.name) for c in self.source_schema.columns)).alias(_AFTER)

    def _letter(self, row: Row) -> Parked:
        after: list[str | None] = list(row[_AFTER])
        slots = {column.key: slot for slot, column in enumerate(self.source_schema.columns)}
        key = tuple(after[slots[i]] for i in range(len(self.source_schema.key_columns)))
        facts = row.asDict()
        lost = facts.get(_LOST, [])
        names = [self.source_schema.columns[slot].name for slot in lost]
        code, message = value_too_large(names) if lost else cast_failed(facts[_WRONG])
        return Parked(
            position=self.reading.cut.position,
            key=key,
            new_key=key,
            role=Role.FAILED,
            code=code,
            message=message,
            stack=code_frames() if self.limits.include_headers else "",
            event={
                "tx_id": None,
                "commit_ts": self.cut_time,
                "op": Op.READ.value,
                "schema_id": self.source_schema.schema_id,
                "before": None,
                "after": after,
                "unchanged": [too_large(slot) for slot in lost] or None,
                "event_id": self._event_id(key, after),
            },
        )

    def _event_id(self, key: Key, after: Sequence[str | None]) -> str:
        """The same row at the same cut has the same id; rows without a key are told apart by their
        values, and equal ones counted."""
        seed = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.target.source} {self.reading.cut.position}")
        text = json.dumps(key or after)
        self._alike[text] += 1
        return str(uuid.uuid5(seed, f"{text} {self._alike[text]}"))

    def _check_limits(self, more: int, counts: Mapping[str, int]) -> None:
        total, rows = len(self.keys) + more, self.reading.survey.rows
        share = total / max(1, rows)
        flood = rows >= SMALL_BATCH and share > self.limits.max_dead_letter_ratio
        if total > self.limits.max_dead_letters or flood:
            raise DataError(
                "sweep.too_many_dead_letters",
                f"{self.target.source}: {total} of {rows} rows or more would be dead letters"
                f" ({told(counts)}); nothing was published",
                hint="give the columns another type or policy (docs/reference/types.md), mend the"
                " rows at the source, or raise dlq.max_dead_letters or dlq.max_dead_letter_ratio;"
                " then sweep again",
            )


def _too_large(target: LakeTarget, counts: Mapping[str, int]) -> DataError:
    return DataError(
        "sweep.value_too_large",
        f"{target.source}: values of {told(counts)} are larger than capture.max_value_bytes",
        hint="shorten or move them at the source, or raise capture.max_value_bytes (and Spark's"
        " memory with it), then sweep again; nothing was published",
    )
