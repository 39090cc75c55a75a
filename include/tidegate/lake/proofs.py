"""Proofs: through which position, and for which share of its keys, a table equals its source.

A proof names the snapshot it was made on and counts only while that snapshot is an ancestor of
``main`` and nothing but the log was applied since. So a rollback takes proofs back with the rows,
and a sweep or another program's write ends them; no commit of the lake table is needed (I1).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestamptzType

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.mark import Mark
from tidegate.errors import RetriableError
from tidegate.lake import commits, positions
from tidegate.lake.coverage import Coverage
from tidegate.lake.ledger import Ledger
from tidegate.names import STEP_OFFSET, STEP_PROPERTY, STEP_SWEEP

TABLE_NAME: Final = "proofs"
PROOF_VERSION: Final = 2  # 2: stripes of keys
KEPT_PER_TABLE: Final = 20
"""Newest proofs of a table that a fold keeps: a rollback over a few of them finds an older one."""
FOLD_FILES: Final = 100

_SCHEMA: Final = Schema(
    NestedField(1, "seq", LongType(), required=False),
    NestedField(2, "version", IntegerType(), required=False),
    NestedField(3, "table", StringType(), required=False),
    NestedField(4, "run", StringType(), required=False),
    NestedField(5, "at", TimestamptzType(), required=False),
    NestedField(6, "snapshot_id", LongType(), required=False),
    NestedField(7, "coverage", StringType(), required=False),
)


@dataclass(frozen=True, slots=True)
class Base:
    """A comparison of every row that found none differing: what a later one may continue."""

    snapshot_id: int
    """The snapshot that was compared; it is never carried on to another one."""
    rows: int
    mark: Mark

    def to_dict(self) -> dict[str, Any]:
        return {
            "snapshot_id": self.snapshot_id,
            "rows": self.rows,
            "mark": self.mark.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Base:
        return cls(data["snapshot_id"], data["rows"], Mark.from_dict(data["mark"]))


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known of one table, on one of its snapshots."""

    table: str
    run: str
    snapshot_id: int
    coverage: Coverage
    base: Base | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The newest proof that still counts; if a newer one no longer does, why."""

    proof: Proof | None = None
    withdrawn: str | None = None

    @property
    def coverage(self) -> Coverage:
        return self.proof.coverage if self.proof else Coverage()


NOTHING: Final = Standing()


class Proofs:
    """A pipeline's proofs. One append per verification, all its tables in it."""

    def __init__(self, catalog: Catalog, pipeline: PipelineConfig) -> None:
        self._ledger = Ledger(catalog, (pipeline.control_namespace, TABLE_NAME), _SCHEMA)

    @property
    def identifier(self) -> tuple[str, str]:
        return self._ledger.identifier

    def add(self, proofs: Sequence[Proof]) -> None:
        """Keep what was proven. Holds places of keys and positions, never a value (I9)."""
        if not proofs:
            return
        self._fold_if_due(self._ledger.add([_row(proof) for proof in proofs]))

    def read(self) -> dict[str, list[Proof]]:
        """Every kept proof by source table, newest first."""
        found: dict[str, list[Proof]] = {}
        for row in reversed(self._ledger.read().rows):
            if row["version"] > PROOF_VERSION:
                continue  # what a newer release proved is not known here
            known = json.loads(row["coverage"])
            base = Base.from_dict(known["base"]) if known.get("base") else None
            coverage = Coverage.from_dict(known)
            proof = Proof(row["table"], row["run"], row["snapshot_id"], coverage, base)
            found.setdefault(proof.table, []).append(proof)
        return found

    def carry(self, name: str, table: Table) -> None:
        """Put a standing proof on the newest snapshot, before its own expires."""
        proof = standing(table, self.read().get(name, ())).proof
        head = commits.head_id(table)
        if proof is not None and head is not None and proof.snapshot_id != head:
            self.add([replace(proof, snapshot_id=head)])

    def _fold_if_due(self, table: Table) -> None:
        head = commits.head_id(table)
        if head is None or self._ledger.file_count(table) < FOLD_FILES:
            return
        kept: list[dict[str, Any]] = []
        seen: dict[str, int] = {}
        for row in reversed(self._ledger.read(table=table).rows):
            seen[row["table"]] = seen.get(row["table"], 0) + 1
            if seen[row["table"]] <= KEPT_PER_TABLE:
                kept.append(row)
        try:
            self._ledger.rewrite(table, kept[::-1], head)
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise  # else another run writes right now; the next one folds


def standing(table: Table | None, proofs: Iterable[Proof]) -> Standing:
    """The newest of ``proofs`` (newest first) that ``table`` still bears out."""
    withdrawn: str | None = None
    for proof in proofs:
        why = _withdrawn(table, proof.snapshot_id)
        if why is None:
            return Standing(proof, withdrawn)
        withdrawn = withdrawn or why
    return Standing(None, withdrawn)


def _withdrawn(table: Table | None, snapshot_id: int) -> str | None:
    """Why a proof made on ``snapshot_id`` no longer counts."""
    if table is None:
        return "the lake table is gone"
    why: str | None = None
    for snapshot in positions.ancestors(table.metadata):
        if snapshot.snapshot_id == snapshot_id:
            return why
        why = why or _ends_proofs(snapshot)
    return f"snapshot {snapshot_id} is no longer in the table's history: rolled back, or expired"


def _ends_proofs(snapshot: Snapshot) -> str | None:
    """Why what was proven before ``snapshot`` no longer is after it."""
    if positions.summary(snapshot).get(STEP_PROPERTY) == STEP_SWEEP:
        return "the table was swept since"
    if positions.summary(snapshot).get(STEP_PROPERTY) == STEP_OFFSET:
        return "its position was set by hand since"
    if positions.is_foreign(snapshot):
        return (
            f"snapshot {snapshot.snapshot_id} changed rows without saying by which step:"
            " another program wrote"
        )
    return None


def _row(proof: Proof) -> dict[str, Any]:
    base = {"base": proof.base.to_dict()} if proof.base else {}
    return {
        "version": PROOF_VERSION,
        "table": proof.table,
        "run": proof.run,
        "at": datetime.now(UTC),
        "snapshot_id": proof.snapshot_id,
        "coverage": json.dumps(proof.coverage.to_dict() | base),
    }
