"""What the MySQL connector needs to know, taken from the pipeline and the platform."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from pydantic import Field

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import WriteMode
from tidegate.connectors.settings import SourceSettings

PINNED: Final[dict[str, str]] = {
    # What decides how values are printed: the log path and the sweep must print alike (I6).
    "time_zone": "'+00:00'",
    # Double quotes are identifiers, as in every other SQL of ours; a backslash is a character.
    "sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    "sql_quote_show_create": "1",
}
"""Session settings, the same on every connection to the source."""

_SERVER_IDS: Final = 1 << 30
"""Derived ids lie above these, away from what people choose."""


class MysqlSettings(SourceSettings):
    """What MySQL and MariaDB need beside what every source does."""

    not_upsert: frozenset[str] = Field(description="Tables that are no plain upsert.")
    server_id: int = Field(description="Ours, among the replicas of the source.")
    slot: str

    @property
    def other_server_id(self) -> int:
        """For looks into the log beside a capture: the server ends the older of two replicas of
        one number."""
        return self.server_id ^ _SERVER_IDS

    @classmethod
    def own(cls, pipeline: PipelineConfig, platform: PlatformConfig) -> dict[str, Any]:
        others = {
            t.source
            for t in pipeline.targets
            if t.write_mode is not WriteMode.UPSERT or t.soft_delete
        }
        return {
            "not_upsert": frozenset(others),
            "server_id": pipeline.source.server_id or derived_server_id(pipeline.pipeline_id),
            "slot": pipeline.slot_name,
        }


def derived_server_id(pipeline_id: str) -> int:
    """The same for the same pipeline; two pipelines of one source rarely share it."""
    digest = hashlib.sha256(pipeline_id.encode()).digest()
    return _SERVER_IDS + int.from_bytes(digest[:4], "big") % _SERVER_IDS
