"""``guard:`` of ``platform.yaml``: when what we hold on the source becomes a worry (I11).

Every figure has two limits: ``warn`` (look at it today) and ``act`` (something breaks if nobody
does anything).
"""

from __future__ import annotations

from typing import Final

from pydantic import Field, model_validator

from tidegate.config.base import Issue, Section, WrongTogether

GIB: Final = 1024**3
HOUR_SECONDS: Final = 3600.0

WAL_WARN_SHARE: Final = 0.5
"""Half of the limit is used: something has not captured for a while."""
WAL_ACT_SHARE: Final = 0.8
"""The rest may go in one bulk load."""
HOURS_WARN: Final = 24.0
"""Within a day: whoever is on duty sees it while there is time to ask."""
HOURS_ACT: Final = 4.0
"""Less than half a shift."""
WAL_WARN_BYTES: Final = 10 * GIB
"""Without a limit the disk is one: ten GiB are more than any healthy capture leaves behind."""
WAL_ACT_BYTES: Final = 50 * GIB
"""Disks for WAL are often of 100 GiB; a full one stops the source."""
XMIN_WARN_AGE: Final = 50_000_000
"""A quarter of PostgreSQL's default autovacuum_freeze_max_age: catalogs begin to bloat."""
XMIN_ACT_AGE: Final = 150_000_000
"""Three quarters of it: beyond, the server vacuums against wrap-around and cannot clean up."""
CAPTURE_WARN_SECONDS: Final = 0.5 * HOUR_SECONDS
"""Six runs of a five-minute schedule."""
CAPTURE_ACT_SECONDS: Final = 4 * HOUR_SECONDS
"""No schedule of changes is that slow by intention."""
APPLY_WARN_SECONDS: Final = 1 * HOUR_SECONDS
"""Longer than a usual sweep of a mid-sized table, for which its increments wait."""
APPLY_ACT_SECONDS: Final = 24 * HOUR_SECONDS
"""A day behind: readers work with yesterday's rows, and the change log cannot be trimmed."""
LOG_WARN_BYTES: Final = 100 * GIB
"""A week of a busy source fits; more means that something holds retention back."""
LOG_ACT_BYTES: Final = 500 * GIB
"""Storage that someone pays for."""
LOG_WARN_SECONDS: Final = 14 * 24 * HOUR_SECONDS
"""Twice the default retention: a held table or a retained snapshot keeps old rows."""
LOG_ACT_SECONDS: Final = 60 * 24 * HOUR_SECONDS
"""Nobody replays two months; whatever holds the rows has been forgotten."""


class GuardConfig(Section):
    """When the source guard warns, and when someone must act."""

    wal_warn_share: float = Field(
        WAL_WARN_SHARE, gt=0, le=1, description="Share of max_slot_wal_keep_size our slot retains."
    )
    wal_act_share: float = Field(
        WAL_ACT_SHARE, gt=0, le=1, description="From here on capture must run now."
    )
    hours_warn: float = Field(
        HOURS_WARN, gt=0, description="Predicted hours until the limit (or the disk) is reached."
    )
    hours_act: float = Field(HOURS_ACT, gt=0, description="From here down capture must run now.")
    wal_disk_bytes: int | None = Field(
        None,
        gt=0,
        description="Room for WAL on the source's disk, where no max_slot_wal_keep_size is set:"
        " PostgreSQL does not tell how much of the disk is free.",
    )
    wal_warn_bytes: int = Field(
        WAL_WARN_BYTES, gt=0, description="WAL our slot retains, where no limit is known."
    )
    wal_act_bytes: int = Field(
        WAL_ACT_BYTES, gt=0, description="From here on capture must run now."
    )
    xmin_warn_age: int = Field(
        XMIN_WARN_AGE, gt=0, description="Transactions whose dead catalog rows our slot keeps."
    )
    xmin_act_age: int = Field(XMIN_ACT_AGE, gt=0, description="From here on capture must run now.")
    capture_warn_seconds: float = Field(
        CAPTURE_WARN_SECONDS, gt=0, description="Since the last capture, while there is more."
    )
    capture_act_seconds: float = Field(
        CAPTURE_ACT_SECONDS, gt=0, description="From here on capture must run now."
    )
    apply_warn_seconds: float = Field(
        APPLY_WARN_SECONDS, gt=0, description="How long a table's captured changes wait."
    )
    apply_act_seconds: float = Field(
        APPLY_ACT_SECONDS, gt=0, description="From here on someone must look at the table."
    )
    log_warn_bytes: int = Field(LOG_WARN_BYTES, gt=0, description="Size of the change log.")
    log_act_bytes: int = Field(
        LOG_ACT_BYTES, gt=0, description="From here on someone must find out what holds it."
    )
    log_warn_seconds: float = Field(
        LOG_WARN_SECONDS, gt=0, description="Age of the change log's oldest rows."
    )
    log_act_seconds: float = Field(
        LOG_ACT_SECONDS, gt=0, description="From here on someone must find out what holds them."
    )

    @model_validator(mode="after")
    def _warn_comes_first(self) -> GuardConfig:
        issues = []
        for warn in (name for name in type(self).model_fields if "_warn" in name):
            act = warn.replace("_warn", "_act")
            low, high = getattr(self, warn), getattr(self, act)
            if warn == "hours_warn":  # the fewer, the worse
                low, high = high, low
            if low > high:
                issues.append(Issue((act,), f"a warning must come before: {warn} and {act} cross"))
        if issues:
            raise WrongTogether(issues)
        return self
