"""Registrations: what a schema registry said of each schema, and whether it answers at all.

Rows are kept per registry (its address): another one is told everything anew. If the table is lost,
nothing is: the registry knows its schemas again by their text (I3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import ConfigError, FatalError, RetriableError, TidegateError, from_dict
from tidegate.lake import commits
from tidegate.lake.ledger import Ledger

TABLE_NAME: Final = "schema_registrations"
_VERSION: Final = 1
_FOLD_FILES: Final = 100
_KEPT: Final = 100_000
"""Rows that a fold keeps: two per schema that a table ever had."""
_PROBLEM: Final = "problem"
_ANSWERS: Final = "answers"

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "registry", StringType(), required=False),
    NestedField(3, "table", StringType(), required=False),
    NestedField(4, "schema_id", StringType(), required=False),
    NestedField(5, "subject", StringType(), required=False),
    NestedField(6, "status", StringType(), required=False),
    NestedField(7, "recorded_at", TimestamptzType(), required=False),
    NestedField(8, "body", StringType(), required=False),
)


class Verdict(StrEnum):
    REGISTERED = "registered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Registration:
    """What the registry said of one schema under one subject."""

    table: str
    schema_id: str
    subject: str
    verdict: Verdict
    id: int | None = None  # the registry's, where it was taken
    version: int | None = None
    compatible: bool | None = None  # with the newest one then; None: there was none, or not asked
    reasons: tuple[str, ...] = ()
    recorded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that is known of one registry."""

    said: Mapping[tuple[str, str], Registration]  # by subject and schema, the newest word
    problem: TidegateError | None = None  # why it did not answer the last time
    problem_since: datetime | None = None

    def registered(self, subject: str, schema_id: str) -> bool:
        found = self.said.get((subject, schema_id))
        return found is not None and found.verdict is Verdict.REGISTERED


class Registrations:
    """A pipeline's registrations. Safe with several writers."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def known(self, registry: str) -> Known:
        """The newest word on everything."""
        said: dict[tuple[str, str], Registration] = {}
        problem: tuple[TidegateError, datetime] | None = None
        for row in self._ledger.read().rows:
            if row["registry"] != registry:
                continue
            body = _body(row)
            if row["status"] == _PROBLEM:
                problem = (from_dict(body["error"]), row["recorded_at"])
            elif row["status"] == _ANSWERS:
                problem = None
            else:
                said[row["subject"], row["schema_id"]] = _registration(row, body)
        return Known(said) if problem is None else Known(said, *problem)

    def note(
        self, registry: str, new: Sequence[Registration], problem: TidegateError | None
    ) -> None:
        """Keep what is news: a run that learns nothing writes nothing."""
        before = self.known(registry)
        rows = [
            _row(registry, one.verdict.value, _told(one), one)
            for one in new
            if not _same(before.said.get((one.subject, one.schema_id)), one)
        ]
        known = None if before.problem is None else before.problem.code
        if problem is not None and problem.code != known:
            rows.append(_row(registry, _PROBLEM, {"error": problem.to_dict()}))
        elif problem is None and known is not None:
            rows.append(_row(registry, _ANSWERS, {}))
        if rows:
            self._append(rows)

    def drop(self) -> bool:
        return self._ledger.drop()

    def _append(self, rows: Sequence[dict[str, Any]]) -> None:
        while True:
            table = self._ledger.open()
            last = self._ledger.last_seq(table)
            numbered = [{**row, "seq": last + n} for n, row in enumerate(rows, start=1)]
            try:
                self._ledger.append(table, numbered, commits.head_id(table))
                break
            except RetriableError as error:
                if error.code != commits.MOVED:
                    raise
        self._ledger.fold_if_due(table, files=_FOLD_FILES, kept=_KEPT)


def registry_of(platform: PlatformConfig) -> str:
    """The address registrations are kept under."""
    if platform.registry_url is None:
        raise ConfigError(
            "registry.none",
            "no schema registry is configured",
            hint="schema_registry: {enabled: true, url: …} in platform.yaml",
        )
    return platform.registry_url


def _row(
    registry: str, status: str, body: Mapping[str, Any], about: Registration | None = None
) -> dict[str, Any]:
    return {
        "registry": registry,
        "table": about.table if about else None,
        "schema_id": about.schema_id if about else None,
        "subject": about.subject if about else None,
        "status": status,
        "recorded_at": datetime.now(UTC),
        "body": json.dumps({"version": _VERSION, **body}),
    }


def _told(one: Registration) -> dict[str, Any]:
    return {
        "id": one.id,
        "registry_version": one.version,
        "compatible": one.compatible,
        "reasons": one.reasons,
    }


def _same(before: Registration | None, now: Registration) -> bool:
    return before is not None and (before.verdict, before.id, before.version, before.reasons) == (
        now.verdict,
        now.id,
        now.version,
        now.reasons,
    )


def _body(row: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(row["body"])
    if body["version"] != _VERSION:
        raise FatalError(
            "registry.stored_format",
            f"a registration has stored format {body['version']}, this release reads {_VERSION}",
            hint="use the Tidegate release that wrote it, or a newer one",
        )
    return body


def _registration(row: Mapping[str, Any], body: Mapping[str, Any]) -> Registration:
    return Registration(
        table=row["table"],
        schema_id=row["schema_id"],
        subject=row["subject"],
        verdict=Verdict(row["status"]),
        id=body["id"],
        version=body["registry_version"],
        compatible=body["compatible"],
        reasons=tuple(body["reasons"]),
        recorded_at=row["recorded_at"],
    )
