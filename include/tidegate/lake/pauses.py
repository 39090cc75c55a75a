"""Stopped or running: a pipeline's durable pause.

Order: the ledger's order; the newest word counts. Durability: outlives every process and Airflow's
database. Concurrency: any number of writers. A running step ends its batch first; whatever would
begin after the word looks here and ends as ``pipeline.stopped``.

Nothing is captured while a pipeline is stopped, so its slot keeps the source's WAL.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.errors import STOPPED_CODE, HeldError
from tidegate.lake.ledger import Ledger
from tidegate.observability import caller

TABLE_NAME: Final = "pauses"
PAUSE_VERSION: Final = 1
KEPT: Final = 1000
FOLD_FILES: Final = 50

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "version", IntegerType(), required=False),
    NestedField(3, "stopped", StringType(), required=False),
    NestedField(4, "at", TimestamptzType(), required=False),
    NestedField(5, "actor", StringType(), required=False),
    NestedField(6, "surface", StringType(), required=False),
    NestedField(7, "reason", StringType(), required=False),
)
_YES, _NO = "yes", "no"


@dataclass(frozen=True, slots=True)
class Pause:
    """One word: stop, or go on."""

    stopped: bool
    at: datetime
    actor: str
    surface: str
    reason: str


class Pauses:
    """A pipeline's pauses."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)
        self.pipeline_id = pipeline.pipeline_id

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def say(self, *, stopped: bool, reason: str) -> Pause:
        """Stop the pipeline, or let it go on."""
        who = caller.current()
        word = Pause(stopped, datetime.now(UTC), who.name, who.surface.value, reason)
        row = {
            "version": PAUSE_VERSION,
            "stopped": _YES if stopped else _NO,
            "at": word.at,
            "actor": word.actor,
            "surface": word.surface,
            "reason": word.reason,
        }
        self._ledger.fold_if_due(self._ledger.add([row]), files=FOLD_FILES, kept=KEPT)
        return word

    def current(self) -> Pause | None:
        """The newest word; None if nobody ever said one."""
        told = self.history(1)
        return told[0] if told else None

    def stopped(self) -> Pause | None:
        """Who stopped the pipeline, if it is stopped."""
        word = self.current()
        return word if word is not None and word.stopped else None

    def history(self, limit: int = 50) -> list[Pause]:
        """The newest words, newest first."""
        rows = self._ledger.read().rows
        return [
            Pause(row["stopped"] == _YES, row["at"], row["actor"], row["surface"], row["reason"])
            for row in rows[::-1][:limit]
        ]

    def refuse_stopped(self) -> None:
        """Raise :data:`STOPPED_CODE` if the pipeline is stopped."""
        pause = self.stopped()
        if pause is not None:
            raise stopped_error(self.pipeline_id, pause)


def refuse_stopped(catalog: Catalog, pipeline: PipelineConfig) -> None:
    """What every job that captures or writes on its own asks first."""
    Pauses(catalog, pipeline).refuse_stopped()


def stopped_error(pipeline_id: str, pause: Pause) -> HeldError:
    return HeldError(
        STOPPED_CODE,
        f"pipeline {pipeline_id} was stopped by {pause.actor} ({pause.surface}) at"
        f" {pause.at:%Y-%m-%d %H:%M:%S} UTC: {pause.reason}",
        hint=f"`tidegate start {pipeline_id}` lets it go on; until then the source keeps its WAL",
    )
