"""What a sweep's branch says about itself: which chunks it holds, read at which cuts.

Every chunk commit carries a note in its snapshot's summary. A sweep that was killed is resumed
from these notes alone; there is no state file beside the table (I1).
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from pyiceberg.table import Table

from tidegate.connectors.cut import Chunk
from tidegate.envelope.position import Position
from tidegate.lake import positions
from tidegate.names import (
    CHUNK_PROPERTY,
    LETTERS_PROPERTY,
    POSITION_PROPERTY,
    RUN_PROPERTY,
    STEP_PROPERTY,
    STEP_SWEEP,
    sweep_branch,
)

CUT_PROPERTY: Final = "tidegate.cut"
SCHEMA_PROPERTY: Final = "tidegate.schema_id"
PLAN_PROPERTY: Final = "tidegate.plan"  # of a sweep's first commit: every chunk
STEP_CHUNK: Final = "chunk"
BRANCH_PREFIX: Final = sweep_branch("")


@dataclass(frozen=True, slots=True)
class ChunkNote:
    """Chunks written in one commit, and how many of how many are done with it."""

    first: str
    last: str
    done: int
    total: int

    def properties(self, run: str, cut: Position, schema_id: str) -> dict[str, str]:
        return {
            RUN_PROPERTY: run,
            STEP_PROPERTY: STEP_CHUNK,
            CUT_PROPERTY: str(cut),
            SCHEMA_PROPERTY: schema_id,
            CHUNK_PROPERTY: json.dumps(asdict(self)),
        }


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """A table's chunks, the first ``done`` of which are on the branch already."""

    chunks: tuple[Chunk, ...]
    done: int = 0

    @property
    def total(self) -> int:
        return len(self.chunks)

    def groups(self, size: int) -> Iterator[tuple[ChunkNote, tuple[Chunk, ...]]]:
        """What is left, ``size`` chunks at a time."""
        for start in range(self.done, self.total, size):
            group = self.chunks[start : start + size]
            yield ChunkNote(group[0].id, group[-1].id, start + len(group), self.total), group

    @property
    def by_key(self) -> bool:
        """Whether the chunks are key ranges, which mean the same rows at any other cut."""
        inner = (*self.chunks[1:], *self.chunks[:-1])
        return all(chunk.lower or chunk.upper for chunk in inner)

    def packed(self) -> str:
        """For a snapshot's summary, which every metadata file repeats: small."""
        text = json.dumps([chunk.to_dict() for chunk in self.chunks])
        return base64.b64encode(zlib.compress(text.encode(), 9)).decode()

    @classmethod
    def unpack(cls, text: str, done: int) -> ChunkPlan:
        chunks = json.loads(zlib.decompress(base64.b64decode(text)))
        return cls(tuple(Chunk.from_dict(chunk) for chunk in chunks), done)


@dataclass(frozen=True, slots=True)
class BranchState:
    """A branch as a killed sweep left it."""

    branch: str
    schema_id: str
    first_cut: Position
    plan: ChunkPlan
    rows: int


def publish_properties(run: str, cut: Position, batch: str) -> dict[str, str]:
    """What the snapshot that becomes ``main`` carries; ``batch`` is what it does to letters."""
    return {
        POSITION_PROPERTY: str(cut),
        RUN_PROPERTY: run,
        STEP_PROPERTY: STEP_SWEEP,
        LETTERS_PROPERTY: batch,
    }


def published(table: Table, run: str) -> Position | None:
    """The position at which ``run`` published this table, if ``main`` still is that snapshot."""
    head = table.current_snapshot()
    if head is None:
        return None
    facts = positions.summary(head)
    if facts.get(RUN_PROPERTY) != run or facts.get(STEP_PROPERTY) != STEP_SWEEP:
        return None
    return positions.stamp(head)


def branch_state(table: Table, run: str) -> BranchState | None:
    """What ``run`` left, if it can be gone on with.

    None if there is no branch, if nothing was written to it, or if ``main`` moved since it was
    made (then it could never be published).
    """
    branch = sweep_branch(run)
    if branch not in table.metadata.refs:
        return None
    main = table.current_snapshot()
    notes: list[tuple[ChunkNote, dict[str, str]]] = []
    joined = False
    for snapshot in positions.ancestors(table.metadata, branch):
        if main is not None and snapshot.snapshot_id == main.snapshot_id:
            joined = True
            break
        facts = positions.summary(snapshot)
        if facts.get(RUN_PROPERTY) == run and CHUNK_PROPERTY in facts:
            notes.append((ChunkNote(**json.loads(facts[CHUNK_PROPERTY])), facts))
    if not notes or (main is not None and not joined):
        return None
    newest, oldest = notes[0], notes[-1]
    if PLAN_PROPERTY not in oldest[1]:
        return None
    return BranchState(
        branch=branch,
        schema_id=newest[1][SCHEMA_PROPERTY],
        first_cut=Position.parse(oldest[1][CUT_PROPERTY]),
        plan=ChunkPlan.unpack(oldest[1][PLAN_PROPERTY], newest[0].done),
        rows=sum(int(facts.get("added-records", "0")) for _, facts in notes),
    )


def sweep_branches(table: Table) -> dict[str, int]:
    """Branches of sweeps and when they were last written (ms), this table's own included."""
    found = {}
    for name, ref in table.metadata.refs.items():
        snapshot = table.metadata.snapshot_by_id(ref.snapshot_id)
        if name.startswith(BRANCH_PREFIX) and snapshot is not None:
            found[name] = snapshot.timestamp_ms
    return found
