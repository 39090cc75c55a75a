"""The audit trail, for people: who did what to a pipeline, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.tables import known_tables
from tidegate.lake.audit_trail import AuditTrail, Entry
from tidegate.lake.catalog import open_catalog

DEFAULT_LIMIT: Final = 20


@dataclass(frozen=True, slots=True)
class Audit:
    """Actions, newest first."""

    entries: tuple[Entry, ...]


def audit(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    tables: Sequence[str] | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Audit:
    """The newest actions; with ``tables`` those that concern one of them."""
    trail = AuditTrail(open_catalog(platform, pipeline), pipeline)
    return Audit(tuple(trail.entries(known_tables(pipeline, tables), limit)))
