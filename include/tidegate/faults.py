"""Named fault points: where a test may kill the process.

A point stands right after (or before) a durable step. In production a point costs one
dictionary look-up. ``TIDEGATE_FAULT=capture.after_commit`` kills the process the first time
the point is reached (``os._exit``, nothing is flushed or closed, as SIGKILL would);
``capture.after_commit:3`` the third time; ``...@stop`` sends SIGSTOP instead, so that a test can
look at the halted process and then SIGKILL it from outside. ``...@raise`` raises :class:`Fault`,
for in-process tests.
"""

from __future__ import annotations

import os
import signal
from typing import Final

POINTS: Final[frozenset[str]] = frozenset(
    {
        # capture: read → files → log commit → confirm
        "capture.after_files",
        "capture.after_schema",
        "capture.after_look",
        "capture.after_commit",
        "capture.after_confirm",
        # apply: lease → evolve → merge → dead letters → publish → release
        "apply.after_lease",
        "apply.after_evolve",
        "apply.after_fill",
        "apply.before_commit",
        "apply.after_removal",
        "apply.after_commit",
        "apply.after_letters",
        "apply.after_publish",
        # sweep: gate → cut → branch → chunk → dead letters → drain → audit → publish → open
        "sweep.after_gate",
        "sweep.after_cut",
        "sweep.after_branch",
        "sweep.after_chunk",
        "sweep.after_letters",
        "sweep.after_drain",
        "sweep.after_audit",
        "sweep.after_publish",
        "sweep.after_open",
        # repair: branch → rows out → rows in → publish
        "repair.after_branch",
        "repair.after_delete",
        "repair.after_rows",
        "repair.after_publish",
        # maintenance: compact → stamp → expire → orphans; change log retention
        "maintain.after_compact",
        "maintain.after_stamp",
        "maintain.after_expire",
        "maintain.after_retention",
        "maintain.after_log_compact",
        # provisioning: gates held → gaps noted → publication → slot
        "deploy.after_holds",
        "deploy.after_publication",
        "deploy.after_drop",
        "deploy.after_slot",
        "undeploy.after_source",
        # schema approval: approval → gate
        "schema.after_approval",
        # schema registry: told → noted
        "registry.after_told",
        # rollback
        "rollback.after_commit",
        # a position set by hand: stamp on a branch → publish
        "offset.after_stamp",
        "offset.after_publish",
        # every audited action: begun is noted → the action
        "audit.after_begun",
    }
)

EXIT_STATUS: Final = 86
"""Exit status of a process killed at a fault point, so that a test can tell it from others."""

_hits: dict[str, int] = {}


class Fault(BaseException):
    """Raised by ``@raise`` points; a BaseException so that no handler swallows it."""


def point(name: str) -> None:
    """Die here if the environment says so."""
    wanted = os.environ.get("TIDEGATE_FAULT")
    if wanted is None:
        return
    spec, _, action = wanted.partition("@")
    target, _, count = spec.partition(":")
    if target != name:
        return
    _hits[name] = _hits.get(name, 0) + 1
    if _hits[name] != int(count or "1"):
        return
    if action == "raise":
        raise Fault(name)
    if action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        return
    os._exit(EXIT_STATUS)
