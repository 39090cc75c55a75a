"""``source:`` of a pipeline whose ``source_type`` is sqlite; ``database`` is the file's path."""

from __future__ import annotations

from pydantic import Field

from tidegate.connectors.settings import SourceSettings


class SqliteSettings(SourceSettings):
    """Fields that are not derived from other keys are what ``source.options`` may set."""

    poll_seconds: float = Field(0.2, gt=0, description="How often a quiet database is asked.")
