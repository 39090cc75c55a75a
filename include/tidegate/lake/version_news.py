"""``schema.version_changed``: a table's schema became another one, and whether the lake follows.

Said once per version, when it is recorded. What the policies mind is known from the file and the
schemas alone; whether the table is really held, the run says that meets the change.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.sinks import WriteMode
from tidegate.lake.evolution import POLICY_OF
from tidegate.lake.lineage import Lineage, versions
from tidegate.lake.schema_history import SchemaEntry, SchemaHistory
from tidegate.lake.topics import Topics
from tidegate.observability import events, log
from tidegate.schema.compatibility import verdict
from tidegate.schema.diff import Change, ChangeKind

_LOG = log.get(__name__)


def say_versions(
    history: SchemaHistory, pipeline: PipelineConfig, added: Sequence[SchemaEntry]
) -> None:
    """Log each of ``added`` that began a new version; a table's first schema is none."""
    for entry in added:
        fields = _news(history, pipeline, entry)
        if fields is not None:
            level = logging.INFO if fields["compatible"] else logging.WARNING
            log.event(_LOG, events.SCHEMA_VERSION_CHANGED, level=level, **fields)


def _news(
    history: SchemaHistory, pipeline: PipelineConfig, entry: SchemaEntry
) -> dict[str, Any] | None:
    table = entry.schema.table
    known = [one for one in history.all(table) if one.seq <= entry.seq]
    found = versions(known, history.approvals.all(str(table)))
    index = next((n for n, version in enumerate(found) if version.seen[0] == entry.at), 0)
    if not index or found[index].schema_id != entry.schema_id:
        return None  # the first, or one that was known, described with more certainty
    minded = [*_minded(Lineage(found, pipeline.target(table)), index)]
    fields: dict[str, Any] = {
        "pipeline": pipeline.pipeline_id,
        "table": str(table),
        "subject": f"{Topics(pipeline).of(table)}-value",
        "previous_version": index,
        "new_version": index + 1,
        "schema_id": entry.schema_id,
        "compatible": not minded,
        "position": str(entry.at),
    }
    return fields | ({"reason": "; ".join(minded)} if minded else {})


def _minded(lineage: Lineage, index: int) -> Iterator[str]:
    """Why the lake will wait for someone's word; nothing if it follows by itself."""
    if lineage.versions[index].approval is not None:
        return
    yield from (str(change) for change in lineage.step(index).changes if _held(lineage, change))
    past = [lineage.schema(at) for at in range(index)]
    judged = verdict(lineage.target.compatibility, past, lineage.schema(index))
    yield from (f"not {judged.mode}: {reason}" for reason in judged.reasons)


def _held(lineage: Lineage, change: Change) -> bool:
    if change.kind is ChangeKind.KEY:
        return lineage.target.write_mode is not WriteMode.APPEND
    policy = POLICY_OF.get(change.kind)
    answer = None if policy is None else getattr(lineage.target.schema_changes, policy)
    return change.kind is ChangeKind.CANDIDATE or answer == "hold"
