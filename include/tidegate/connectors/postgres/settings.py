"""What the PostgreSQL connector needs to know, taken from the pipeline and the platform."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import WriteMode
from tidegate.connectors.settings import SourceSettings

MIN_VERSION: Final = 14
MAX_VERSION: Final = 18

PINNED: Final[dict[str, str]] = {
    # What decides how values are printed: the log path and the sweep must print alike (I6).
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    "search_path": "pg_catalog",
    # A policy on a table must be an error, never a silent filter.
    "row_security": "off",
}
"""Session settings, the same on every connection to the source."""

UNBOUNDED: Final[dict[str, str]] = {
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}
"""A role's own limits must not end a cut; ours (``cut_timeout_seconds`` …) do."""


class PostgresSettings(SourceSettings):
    """What PostgreSQL needs beside what every source does."""

    append_only: frozenset[str] = Field(description="Tables written in append mode.")
    by_key: frozenset[str] = Field(
        frozenset(), description="Tables whose write mode needs a key: history, soft_delete."
    )
    slot: str
    publication: str
    ddl_messages: bool = Field(description="Whether to install the event trigger where we may.")

    @classmethod
    def own(cls, pipeline: PipelineConfig, platform: PlatformConfig) -> dict[str, Any]:
        append = {t.source for t in pipeline.targets if t.write_mode is WriteMode.APPEND}
        keyed = {t.source for t in pipeline.targets if not t.forgets} - append
        return {
            "append_only": frozenset(append),
            "by_key": frozenset(keyed),
            "slot": pipeline.slot_name,
            "publication": pipeline.publication_name,
            "ddl_messages": pipeline.source.ddl_messages == "auto",
        }
