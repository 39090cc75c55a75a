"""Names of metrics: one place, so that exporters, dashboards and alerts mean the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PREFIX: Final = "tidegate_"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. A counter's name ends in ``_total``, a unit is part of the name."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


_TABLE: Final = ("pipeline", "table")

UP: Final = Metric(f"{PREFIX}pipeline_up", "gauge", "1: could be looked at.", ("pipeline",))
RUNNING: Final = Metric(
    f"{PREFIX}pipeline_running", "gauge", "0: stopped by someone.", ("pipeline",)
)
DEPLOYED: Final = Metric(f"{PREFIX}pipeline_deployed", "gauge", "1: deployed.", ("pipeline",))
CAPTURE_LAG_BYTES: Final = Metric(
    f"{PREFIX}capture_lag_bytes", "gauge", "Written by the source, not captured.", ("pipeline",)
)
CAPTURED_AGE: Final = Metric(
    f"{PREFIX}captured_age_seconds", "gauge", "Since the change log last moved on.", ("pipeline",)
)
CAPTURED: Final = Metric(
    f"{PREFIX}changes_captured_total", "counter", "Changes captured.", ("pipeline",)
)
APPLIED: Final = Metric(
    f"{PREFIX}changes_applied_total",
    "counter",
    "Rows that applies changed, by operation.",
    ("pipeline", "table", "op"),
)
SWEPT: Final = Metric(f"{PREFIX}rows_swept_total", "counter", "Rows that sweeps read.", _TABLE)
DURATION: Final = Metric(
    f"{PREFIX}run_duration_seconds",
    "histogram",
    "How long captures, applies and sweeps took.",
    ("pipeline", "kind"),
)
LAG_BYTES: Final = Metric(
    f"{PREFIX}table_lag_bytes", "gauge", "Captured and not yet applied.", _TABLE
)
LAG_SECONDS: Final = Metric(
    f"{PREFIX}table_lag_seconds", "gauge", "Since the table fell behind the log.", _TABLE
)
GATE: Final = Metric(
    f"{PREFIX}gate_state",
    "gauge",
    "1 for the state a table's gate is in.",
    ("pipeline", "table", "state"),
)
GATE_AGE: Final = Metric(
    f"{PREFIX}gate_closed_seconds", "gauge", "Since a gate that is not open was closed.", _TABLE
)
SWEEP_CHUNKS: Final = Metric(
    f"{PREFIX}sweep_chunks_done", "gauge", "Chunks that a running sweep has committed.", _TABLE
)
SWEEP_ROWS: Final = Metric(
    f"{PREFIX}sweep_rows_done", "gauge", "Rows that a running sweep has committed.", _TABLE
)
DEAD_LETTERS: Final = Metric(
    f"{PREFIX}dead_letters", "gauge", "Changes that wait to be redriven.", _TABLE
)
SCHEMA_HELD: Final = Metric(
    f"{PREFIX}schema_held", "gauge", "1: a schema change waits for someone's word.", _TABLE
)
VERIFIED_AGE: Final = Metric(
    f"{PREFIX}verified_age_seconds", "gauge", "Since the table was last compared.", _TABLE
)
VERIFIED_SHARE: Final = Metric(
    f"{PREFIX}verified_percent", "gauge", "Share of the keys that is proven equal.", _TABLE
)
VERIFIED_DIFFERS: Final = Metric(
    f"{PREFIX}verified_differs", "gauge", "1: the last comparison found differences.", _TABLE
)
DATA_FILES: Final = Metric(
    f"{PREFIX}table_data_files", "gauge", "Data files of the current snapshot.", _TABLE
)
DELETE_FILES: Final = Metric(
    f"{PREFIX}table_delete_files", "gauge", "Delete files of the current snapshot.", _TABLE
)
TABLE_BYTES: Final = Metric(
    f"{PREFIX}table_bytes", "gauge", "Bytes of the current snapshot.", _TABLE
)
TABLE_ROWS: Final = Metric(
    f"{PREFIX}table_rows", "gauge", "Rows by the snapshot's summary.", _TABLE
)
LOG_BYTES: Final = Metric(
    f"{PREFIX}change_log_bytes", "gauge", "Bytes of the change log.", ("pipeline",)
)
LOG_FILES: Final = Metric(
    f"{PREFIX}change_log_files", "gauge", "Files of the change log.", ("pipeline",)
)
GUARD: Final = Metric(
    f"{PREFIX}guard_verdict", "gauge", "0 ok, 1 warn, 2 act.", ("pipeline", "check")
)
SOURCE_UP: Final = Metric(
    f"{PREFIX}source_reachable", "gauge", "1: the source answered.", ("pipeline",)
)
RETAINED: Final = Metric(
    f"{PREFIX}source_retained_bytes", "gauge", "WAL that the slot holds back.", ("pipeline",)
)
HOURS_LEFT: Final = Metric(
    f"{PREFIX}source_hours_left", "gauge", "Until a limit of WAL is reached.", ("pipeline",)
)
XMIN_AGE: Final = Metric(
    f"{PREFIX}source_xmin_age", "gauge", "Transactions the slot keeps vacuum from.", ("pipeline",)
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
