"""Start and stop: a pipeline's durable pause, for people (I10)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.pauses import Pause, Pauses

RUNNING: Final = "running"
STOPPED: Final = "stopped"


@dataclass(frozen=True, slots=True)
class Running:
    """Whether a pipeline may work, and who said so. ``changed``: by this very call."""

    pipeline_id: str
    state: str  # running (it may work, which is not to say that it does) | stopped
    since: datetime | None = None
    actor: str | None = None
    surface: str | None = None
    reason: str | None = None
    changed: bool = False

    @property
    def stopped(self) -> bool:
        return self.state == STOPPED


def running(pipeline: PipelineConfig, platform: PlatformConfig) -> Running:
    """Whether the pipeline is stopped."""
    catalog = open_catalog(platform, pipeline)
    return record(pipeline.pipeline_id, Pauses(catalog, pipeline).current())


def stop(pipeline: PipelineConfig, platform: PlatformConfig, *, reason: str) -> Running:
    """Let nothing begin any more: capture, apply, sweeps, redrives and reloads end as ``stopped``.

    What is at work finishes its batch. The slot stays, so the source keeps its WAL meanwhile; the
    guard goes on warning of it. Again: no change.
    """
    return _say(pipeline, platform, stopped=True, reason=reason)


def start(pipeline: PipelineConfig, platform: PlatformConfig, *, reason: str) -> Running:
    """Let a stopped pipeline go on from where it stands. Again: no change."""
    return _say(pipeline, platform, stopped=False, reason=reason)


def record(pipeline_id: str, word: Pause | None, *, changed: bool = False) -> Running:
    """A pause as everyone shows it."""
    if word is None:
        return Running(pipeline_id, RUNNING)
    state = STOPPED if word.stopped else RUNNING
    return Running(
        pipeline_id, state, word.at, word.actor, word.surface, word.reason, changed=changed
    )


def _say(
    pipeline: PipelineConfig, platform: PlatformConfig, *, stopped: bool, reason: str
) -> Running:
    catalog = open_catalog(platform, pipeline)
    pauses = Pauses(catalog, pipeline)
    now = pauses.current()
    if (now is not None and now.stopped) is stopped:
        return record(pipeline.pipeline_id, now)
    action = Action.STOP if stopped else Action.START
    trail = AuditTrail(catalog, pipeline)
    with trail.action(action, pipeline.source.tables, reason=reason):
        word = pauses.say(stopped=stopped, reason=reason)
    return record(pipeline.pipeline_id, word, changed=True)
