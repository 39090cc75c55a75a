"""Audit trail: who did what, when, through which surface.

An action writes ``begun`` before it takes effect and ``done`` or ``failed`` after it. Killed in
between, it stays ``begun``: true, and enough to ask its actor. A failure to write the first refuses
the action; a failure to write the second does not undo what was done.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.errors import ConfigError, TidegateError
from tidegate.lake.ledger import Ledger
from tidegate.observability import caller, log

_LOG = log.get(__name__)
TABLE_NAME: Final = "audit_trail"
ENTRY_VERSION: Final = 1
KEPT: Final = 10_000
"""Rows that a fold keeps, two per action: some years of what people do to a pipeline."""
FOLD_FILES: Final = 100
"""Files after which the trail is folded into one."""

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "version", IntegerType(), required=False),
    NestedField(3, "entry", StringType(), required=False),
    NestedField(4, "stage", StringType(), required=False),
    NestedField(5, "at", TimestamptzType(), required=False),
    NestedField(6, "action", StringType(), required=False),
    NestedField(7, "actor", StringType(), required=False),
    NestedField(8, "surface", StringType(), required=False),
    NestedField(9, "tables", ListType(20, StringType(), False), required=False),
    NestedField(10, "details", StringType(), required=False),
)


class Action(StrEnum):
    """What is kept: everything a person asks for that changes a pipeline or its tables."""

    DEPLOY = "deploy"
    NEW_EPOCH = "new epoch"
    UNDEPLOY = "undeploy"
    SWEEP = "sweep"
    HOLD = "hold"
    OPEN = "open"
    ABANDON = "abandon"
    ROLLBACK = "rollback"
    MAINTAIN = "maintain"  # forced; what is due is the schedule's own business
    APPROVE = "approve"
    LEAVE = "leave held"  # someone looked at a schema change and did not approve it
    REDRIVE = "redrive"
    DISCARD = "discard"
    REPAIR = "repair"
    RELOAD = "reload"
    ROTATE = "rotate"
    CREATE = "create"
    DELETE = "delete"
    START = "start"
    STOP = "stop"
    SET_OFFSET = "set offset"


class Stage(StrEnum):
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Entry:
    """One action. ``outcome`` is ``begun`` while it is at work, and for ever if it was killed."""

    entry: str
    action: str
    actor: str
    surface: str
    tables: tuple[str, ...]
    at: datetime
    ended_at: datetime | None
    outcome: str
    details: dict[str, Any]


@dataclass(slots=True)
class Noting:
    """What an action in hand adds to its entry before it ends."""

    details: dict[str, Any] = field(default_factory=dict)
    stage: Stage = Stage.DONE

    def add(self, **details: Any) -> None:
        self.details |= details

    def failed(self, **details: Any) -> None:
        """It ended without an exception, and not well."""
        self.stage = Stage.FAILED
        self.add(**details)


class AuditTrail:
    """A pipeline's trail. Several writers at once; entries are never altered."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def note(
        self,
        action: str,
        tables: Sequence[str],
        actor: str | None = None,
        surface: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """One finished action, in one row. Details hold counts, names and reasons, never a row's
        value or a secret (I9)."""
        self._write(self._row(action, tables, actor, surface), Stage.DONE, details or {})

    @contextmanager
    def action(self, action: str, tables: Sequence[str], **details: Any) -> Iterator[Noting]:
        """The block is the action: noted before it begins, and after it ended."""
        row = self._row(action, tables)
        self._write(row, Stage.BEGUN, details)
        faults.point("audit.after_begun")
        noting = Noting()
        try:
            yield noting
        except Exception as error:
            reason = error.code if isinstance(error, TidegateError) else type(error).__name__
            self._end(row, Stage.FAILED, {**noting.details, "error": reason})
            raise
        # A signal (BaseException) ends the process within seconds: ``begun`` says what is known.
        self._end(row, noting.stage, noting.details)

    def entries(self, tables: Sequence[str] | None = None, limit: int = 50) -> list[Entry]:
        """The newest actions, newest first; with ``tables`` those that concern one of them."""
        found: dict[str, Entry] = {}
        for row in self._ledger.read().rows:
            found[row["entry"]] = _merged(found.get(row["entry"]), row)
        wanted = [
            entry
            for entry in reversed(found.values())
            if tables is None or set(tables) & set(entry.tables)
        ]
        return wanted[:limit]

    def drop(self) -> bool:
        return self._ledger.drop()

    def _row(
        self,
        action: str,
        tables: Sequence[str],
        actor: str | None = None,
        surface: str | None = None,
    ) -> dict[str, Any]:
        who = caller.current()
        return {
            "version": ENTRY_VERSION,
            "entry": uuid.uuid4().hex[:12],
            "action": _known(action),
            "actor": actor or who.name,
            "surface": surface or who.surface.value,
            "tables": list(tables),
        }

    def _write(self, row: Mapping[str, Any], stage: Stage, details: Mapping[str, Any]) -> None:
        told = {name: value for name, value in details.items() if value is not None}
        text = json.dumps(told, default=str)
        table = self._ledger.add(
            [{**row, "stage": stage.value, "at": datetime.now(UTC), "details": text}]
        )
        self._ledger.fold_if_due(table, files=FOLD_FILES, kept=KEPT)

    def _end(self, row: Mapping[str, Any], stage: Stage, details: Mapping[str, Any]) -> None:
        log.event(
            _LOG,
            f"{row['action']} {stage.value}",
            actor=f"{row['actor']} ({row['surface']})",
            tables=len(row["tables"]),
        )
        if self._ledger.table() is None:
            return  # the action was to remove it
        try:
            self._write(row, stage, details)
        except TidegateError as error:
            # What was done is done: the entry stays ``begun``, which is less, and true.
            log.event(
                _LOG,
                "the end of an action is not in the audit trail",
                level=logging.WARNING,
                status=stage.value,
                code=error.code,
                reason=error.message,
            )


def _known(action: str) -> str:
    try:
        return Action(action).value
    except ValueError:
        raise ConfigError(
            "audit.action",
            f"{action!r} is no action of the audit trail",
            hint=f"one of {', '.join(sorted(Action))}",
        ) from None


def _merged(begun: Entry | None, row: Mapping[str, Any]) -> Entry:
    """The entry as its rows tell it; the end may have lost its beginning to a fold."""
    ended = row["stage"] != Stage.BEGUN.value
    return Entry(
        entry=row["entry"],
        action=row["action"],
        actor=row["actor"],
        surface=row["surface"],
        tables=tuple(row["tables"] or ()),
        at=begun.at if begun else row["at"],
        ended_at=row["at"] if ended else None,
        outcome=row["stage"],
        details={**(begun.details if begun else {}), **json.loads(row["details"])},
    )
