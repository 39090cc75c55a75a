"""What is wrong with a pipeline, and why: found once here, for whoever shows it.

A *condition* is what one table is in; a *finding* is one sentence of work for a person: all tables
of a pipeline that are in the same condition for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from tidegate.control.records import PipelineStatus, TableStatus
from tidegate.lake.schema_hold import HOLD_MARK

LAGGING_SECONDS: Final = 1800.0
"""As the shipped alert has it (deploy/prometheus, TidegateTableBehind)."""
CONDITIONS: Final = (
    "differs",
    "failing",
    "held",
    "letters",
    "needs",
    "lagging",
    "sweeping",
    "unproven",
)
"""Worst first: the first one a table is in is its state."""
HEALTHY: Final = "healthy"
QUIET: Final = frozenset({"sweeping"})
"""Conditions that are nobody's work."""
SEVERITIES: Final = {
    "broken": "bad",
    "differs": "bad",
    "failing": "bad",
    "held": "warn",
    "letters": "warn",
    "needs": "warn",
    "lagging": "warn",
    "stopped": "warn",
    "not_deployed": "warn",
    "unproven": "note",
}


_ASKS_FOR_SWEEP: Final = re.compile(r"\bsweep (it|the table)\b|\btidegate sweep\b")
"""How reasons and hints of ours name a sweep as the way on; an error of another kind (a catalog
that was locked) passes by itself, and reading a table anew is no help."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that waits for a person, with its reason in fields."""

    kind: str  # a condition of tables, or of the pipeline: stopped, not_deployed, broken
    severity: str  # bad | warn | note
    tables: tuple[str, ...] = ()
    since: datetime | None = None  # of the one that waits longest
    reason: str | None = None
    code: str | None = None
    hint: str | None = None
    actor: str | None = None
    run: str | None = None
    lag_seconds: float | None = None  # of the table furthest behind
    letters: int = 0
    action: str | None = None
    """What helps: approve | open | sweep | letters | verify | repair | runs | start."""


def conditions(table: TableStatus, *, deployed: bool = True) -> tuple[str, ...]:
    """Everything that is the matter with a table, worst first. None: it is healthy."""
    gate, proof = table.gate.state, table.verified_through
    differs = proof is not None and proof.differs
    behind = table.lag_seconds is not None and table.lag_seconds > LAGGING_SECONDS
    found = {
        "differs": differs,
        "failing": table.gate.failed is not None or failure(table) is not None,
        "held": gate == "held",
        "letters": table.dead_letters > 0,
        "needs": deployed and table.needs is not None and gate == "open",
        "lagging": behind and gate == "open",
        "sweeping": gate == "sweeping" and table.gate.failed is None,
        "unproven": table.exists and not differs and not _proven(table),
    }
    return tuple(name for name in CONDITIONS if found[name])


def failure(table: TableStatus) -> dict[str, Any] | None:
    """What failed the last time and did not succeed since: kind, run, at, error."""
    told = [
        {"kind": kind, **entry}
        for kind, entry in (("apply", table.last_apply), ("sweep", table.last_sweep))
        if entry is not None
    ]
    newest = max(told, key=lambda entry: entry["at"], default=None)
    return newest if newest is not None and newest.get("status") == "failed" else None


def findings(now: PipelineStatus, deployed: bool) -> tuple[Finding, ...]:
    """What is wrong with a pipeline, gravest first."""
    found: list[Finding] = list(_of_pipeline(now))
    groups: dict[tuple[Any, ...], list[tuple[TableStatus, Finding]]] = {}
    for table in now.tables:
        for one in _of_table(table, deployed):
            key = (one.kind, one.reason, one.code, one.actor, one.action)
            groups.setdefault(key, []).append((table, one))
    found += [_together(group) for group in groups.values()]
    return tuple(sorted(found, key=_gravity))


def _of_pipeline(now: PipelineStatus) -> Iterator[Finding]:
    word = now.running
    if word is not None and word.stopped:
        yield Finding(
            "stopped",
            SEVERITIES["stopped"],
            since=word.since,
            reason=word.reason,
            actor=word.actor,
            action="start",
        )
    if not now.deployed:
        yield Finding(
            "not_deployed",
            SEVERITIES["not_deployed"],
            reason="nothing is captured: its publication and slot are not there",
            hint=f"`tidegate deploy {now.pipeline_id}`",
        )


def _of_table(table: TableStatus, deployed: bool) -> Iterator[Finding]:
    for kind in conditions(table, deployed=deployed):
        if kind not in QUIET:
            yield _finding(kind, table)


def helps(table: TableStatus, kind: str) -> str | None:
    """The one action that ends a condition of ``table``."""
    match kind:
        case "held":
            reason = table.gate.reason or ""
            if reason.startswith(HOLD_MARK):
                return "approve"
            return "sweep" if _ASKS_FOR_SWEEP.search(reason) else "open"
        case "failing":
            told = failure(table) or {}
            hint = str((told.get("error") or {}).get("hint") or "")
            again = table.gate.failed or told.get("kind") == "sweep" or _ASKS_FOR_SWEEP.search(hint)
            return "sweep" if again else "runs"
        case _:
            return _HELP.get(kind)


_HELP: Final = {"needs": "sweep", "letters": "letters", "differs": "repair", "unproven": "verify"}


def _finding(kind: str, table: TableStatus) -> Finding:
    base = Finding(kind, SEVERITIES[kind], action=helps(table, kind))
    gate, proof = table.gate, table.verified_through
    match kind:
        case "held":
            return replace(
                base, since=gate.since, reason=gate.reason, actor=gate.actor, run=gate.run
            )
        case "failing" if gate.failed is not None:
            return replace(
                base,
                since=gate.failed.at,
                reason=f"the sweep failed: {gate.failed.reason or 'no reason was given'}",
                hint="Sweep goes on where it ended; Open with “give up” abandons it",
                actor=gate.actor,
                run=gate.run,
            )
        case "failing":
            told = failure(table) or {}
            error = told.get("error") or {}
            return replace(
                base,
                since=told.get("at"),
                reason=error.get("message") or told.get("reason"),
                code=error.get("code"),
                hint=error.get("hint"),
                run=told.get("run"),
            )
        case "needs":
            return replace(base, reason=table.needs)
        case "letters":
            return replace(base, letters=table.dead_letters)
        case "lagging":
            return replace(base, lag_seconds=table.lag_seconds)
        case "differs":
            reason = "rows that differ from the source were found"
            return replace(base, since=proof.last_at if proof else None, reason=reason)
    withdrawn = proof is not None and proof.withdrawn is not None
    reason = "a proof no longer counts" if withdrawn else "never compared with the source"
    return replace(base, reason=reason)


def _together(group: Sequence[tuple[TableStatus, Finding]]) -> Finding:
    """One finding of several tables."""
    first = group[0][1]
    since = [one.since for _, one in group if one.since is not None]
    behind = [one.lag_seconds for _, one in group if one.lag_seconds is not None]
    return replace(
        first,
        tables=tuple(table.table for table, _ in group),
        since=min(since, default=None),
        lag_seconds=max(behind, default=None),
        letters=sum(one.letters for _, one in group),
    )


def _gravity(finding: Finding) -> tuple[int, int]:
    kinds, severities = list(SEVERITIES), ("bad", "warn", "note")
    return severities.index(finding.severity), kinds.index(finding.kind)


def _proven(table: TableStatus) -> bool:
    """Whether every key is proven equal: a share of them is shown as what it is, a share."""
    proof = table.verified_through
    return proof is not None and proof.position is not None
