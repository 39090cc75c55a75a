"""Reports: what every run did, kept with the lake and not in Airflow's database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.errors import ConfigError
from tidegate.lake.ledger import Ledger
from tidegate.lake.report_totals import Totals

TABLE_NAME: Final = "reports"
REPORT_VERSION: Final = 1
KINDS: Final = frozenset(
    {
        "capture",
        "apply",
        "sweep",
        "maintain",
        "verify",
        "reload",
        "rollback",
        "deploy",
        "redrive",
        "schema",
    }
)
TOTALS: Final = "totals"
"""The kind of the one row in which forgotten reports are summed up."""
KEPT: Final = 2000
"""Newest reports that a fold keeps: about a week of a five-minute schedule."""
FOLD_FILES: Final = 100
"""Files after which the reports are folded into one."""

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "version", IntegerType(), required=False),
    NestedField(3, "kind", StringType(), required=False),
    NestedField(4, "run", StringType(), required=False),
    NestedField(5, "at", TimestamptzType(), required=False),
    NestedField(6, "body", StringType(), required=False),
)


@dataclass(frozen=True, slots=True)
class Report:
    """One run's report."""

    seq: int
    kind: str
    run: str
    at: datetime
    body: dict[str, Any]


class Reports:
    """A pipeline's reports. One append per run; several writers may report at once."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def add(self, kind: str, run: str, body: Mapping[str, Any]) -> None:
        """Keep a report. Bodies hold counts and positions, never row values (I9)."""
        if kind not in KINDS:
            raise ConfigError(
                "report.kind", f"{kind!r} is no kind of report", hint=f"one of {sorted(KINDS)}"
            )
        row = {
            "version": REPORT_VERSION,
            "kind": kind,
            "run": run,
            "at": datetime.now(UTC),
            "body": json.dumps(dict(body), default=str),
        }
        table = self._ledger.add([row])
        self._ledger.fold_if_due(table, files=FOLD_FILES, kept=KEPT, carry=_carried)

    def recent(self, kind: str | None = None, limit: int = 50) -> list[Report]:
        """The newest reports, newest first."""
        rows = [
            row
            for row in reversed(self._ledger.read().rows)
            if row["kind"] != TOTALS and (kind is None or row["kind"] == kind)
        ]
        return [
            Report(row["seq"], row["kind"], row["run"], row["at"], json.loads(row["body"]))
            for row in rows[:limit]
        ]

    def totals(self) -> Totals:
        """What all runs did together, those included whose reports are gone."""
        return _summed(self._ledger.read().rows)

    def drop(self) -> bool:
        return self._ledger.drop()


def _summed(rows: Sequence[Mapping[str, Any]]) -> Totals:
    found = Totals()
    for row in rows:
        body = json.loads(row["body"])
        if row["kind"] == TOTALS:
            found = Totals.from_dict(body)  # the oldest row, if there is one
        else:
            found.add(row["kind"], body)
    return found


def _carried(gone: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "version": REPORT_VERSION,
        "kind": TOTALS,
        "run": TOTALS,
        "at": gone[-1]["at"],
        "body": json.dumps(_summed(gone).to_dict()),
    }
