"""The source guard's judgement: from figures to verdicts, each one sentence and a next step (I11).

Pure: figures in, findings out. ``warn`` is for today, ``act`` for now. To act is to capture, which
releases the source's log; nothing here ever drops a row or a slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tidegate.config.guard import GuardConfig
from tidegate.observability.quantities import human_bytes, human_seconds

CAPTURE: Final = "run `tidegate guard --act`, which captures now"
RAISE: Final = "raise {limit}, or capture more often than every {left}"
LITTLE: Final = 0.01
"""Of the room that is left: so much that waits to be captured makes no difference."""
RECOVER: Final = "`tidegate recover --dry-run` says which tables must be swept, and why"
UNRESERVED: Final = "unreserved"
"""The slot's WAL may go with the next checkpoint."""


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    ACT = "act"


_RANK: Final = {Verdict.OK: 0, Verdict.WARN: 1, Verdict.ACT: 2}


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """What we hold on the source. None is what is not known."""

    slot: str
    slot_state: str  # missing, or the source's own word
    retained_bytes: int | None = None
    keep_bytes: int | None = None  # the most it may retain
    left_bytes: int | None = None  # may be written before a limit is reached
    limit: str | None = None  # which limit that is
    bytes_per_hour: float | None = None
    hours_left: float | None = None
    xmin_age: int | None = None
    to_capture_bytes: int | None = None
    capture_seconds: float | None = None  # since the last capture
    by_time: bool = False  # the source keeps its log for a time, read or not
    expiry_seconds: float | None = None  # that time; None: for ever
    lost: str | None = None  # why the log has a hole, if it has


@dataclass(frozen=True, slots=True)
class LogFigures:
    """The change log."""

    bytes: int
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class TableFigures:
    """One table's applies."""

    table: str
    gate: str
    applied_seconds: float | None  # since an apply or sweep last brought it up to date
    waits_seconds: float | None  # the oldest change that waits; None: none does


@dataclass(frozen=True, slots=True)
class Figures:
    """A pipeline, measured. Where ``source`` is None, ``problem`` says why it was not asked."""

    source: SourceFigures | None
    problem: str | None = None
    log: LogFigures | None = None
    tables: tuple[TableFigures, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One judgement."""

    check: str
    verdict: Verdict
    says: str
    next: str | None = None
    releases: bool = False  # capturing now helps


@dataclass(frozen=True, slots=True)
class Guard:
    """Figures and what they mean, the worst first."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    figures: Figures

    @property
    def releasable(self) -> bool:
        """Whether capturing now helps against one of the findings."""
        return any(finding.releases for finding in self.findings)


def judge(figures: Figures, limits: GuardConfig) -> Guard:
    """The whole judgement."""
    found = sorted(_findings(figures, limits), key=lambda finding: -_RANK[finding.verdict])
    worst = max((finding.verdict for finding in found), key=_RANK.__getitem__, default=Verdict.OK)
    return Guard(worst, tuple(found), figures)


def judge_source(figures: SourceFigures, limits: GuardConfig) -> tuple[Finding, ...]:
    """The part a capture can tell by itself."""
    if figures.lost is not None:
        return (Finding("slot", Verdict.ACT, figures.lost, RECOVER),)
    if figures.by_time:
        return (_expiry(figures, limits), _capture(figures, limits))
    return (
        _wal(figures, limits),
        _hours(figures, limits),
        _xmin(figures, limits),
        _capture(figures, limits),
    )


def _findings(figures: Figures, limits: GuardConfig) -> Iterator[Finding]:
    if figures.source is not None:
        yield from judge_source(figures.source, limits)
    elif figures.problem is not None:
        says = f"the source could not be asked: {figures.problem}"
        yield Finding(
            "source", Verdict.ACT, says, "`tidegate validate` tells what is wrong with it"
        )
    if figures.log is not None:
        yield from _log(figures.log, limits)
    for table in figures.tables:
        yield _apply(table, limits)


def _wal(figures: SourceFigures, limits: GuardConfig) -> Finding:
    retained = figures.retained_bytes or 0
    if figures.slot_state == UNRESERVED:
        says = f"slot {figures.slot} is beyond its limit: its WAL may go with the next checkpoint"
        return Finding("wal", Verdict.ACT, says, CAPTURE, releases=True)
    if figures.keep_bytes:
        share = retained / figures.keep_bytes
        verdict = _above(share, limits.wal_warn_share, limits.wal_act_share)
        whole = f"{share:.0%} of max_slot_wal_keep_size {human_bytes(figures.keep_bytes)}"
    else:
        verdict = _above(retained, limits.wal_warn_bytes, limits.wal_act_bytes)
        whole = "no max_slot_wal_keep_size is set, the disk is the limit"
    says = f"slot {figures.slot} retains {human_bytes(retained)} of WAL ({whole})"
    return _releasable("wal", verdict, says)


def _hours(figures: SourceFigures, limits: GuardConfig) -> Finding:
    check = "time left"
    if figures.limit is None:
        says = (
            "unknown how long until the disk is full: no max_slot_wal_keep_size is set, and"
            " PostgreSQL does not tell the free space (guard.wal_disk_bytes may)"
        )
        return Finding(check, Verdict.OK, says)
    if figures.bytes_per_hour is None or figures.left_bytes is None:
        says = f"unknown how long until {figures.limit} is reached: too few captures to see a pace"
        return Finding(check, Verdict.OK, says)
    pace = f"{human_bytes(round(figures.bytes_per_hour))} of WAL an hour"
    if figures.hours_left is None:
        return Finding(check, Verdict.OK, f"the source writes no WAL; {figures.limit} is far")
    left = human_seconds(figures.hours_left * 3600)
    says = f"{left} until {figures.limit} is reached without a capture, at {pace}"
    verdict = _above(-figures.hours_left, -limits.hours_warn, -limits.hours_act)
    waiting = figures.to_capture_bytes or 0
    if verdict is Verdict.ACT and waiting < figures.left_bytes * LITTLE:
        # Capturing once more frees nothing: the limit is too small for this source.
        return Finding(check, Verdict.WARN, says, RAISE.format(limit=figures.limit, left=left))
    return _releasable(check, verdict, says)


def _expiry(figures: SourceFigures, limits: GuardConfig) -> Finding:
    """The limits are shares of the time that the log is kept."""
    check = "time left"
    if figures.expiry_seconds is None:
        return Finding(check, Verdict.OK, "the source does not drop its log by itself")
    kept = f"the source drops its log after {human_seconds(figures.expiry_seconds)}, read or not"
    if figures.capture_seconds is None or not figures.to_capture_bytes:
        return Finding(check, Verdict.OK, f"{kept}; nothing waits to be captured")
    left = max(0.0, figures.expiry_seconds - figures.capture_seconds)
    share = figures.capture_seconds / figures.expiry_seconds
    says = f"{kept}: {human_seconds(left)} are left for what is not captured"
    return _releasable(check, _above(share, limits.wal_warn_share, limits.wal_act_share), says)


def _xmin(figures: SourceFigures, limits: GuardConfig) -> Finding:
    age = figures.xmin_age or 0
    verdict = _above(age, limits.xmin_warn_age, limits.xmin_act_age)
    says = f"slot {figures.slot} keeps vacuum from dead catalog rows of {age:,} transactions"
    return _releasable("xmin", verdict, says.replace(",", "\u202f"))


def _capture(figures: SourceFigures, limits: GuardConfig) -> Finding:
    check = "capture"
    if figures.capture_seconds is None:
        return Finding(check, Verdict.OK, "nothing was captured yet")
    says = f"last captured {human_seconds(figures.capture_seconds)} ago"
    if not figures.to_capture_bytes:
        return Finding(check, Verdict.OK, f"{says}, nothing new since")
    verdict = _above(
        figures.capture_seconds, limits.capture_warn_seconds, limits.capture_act_seconds
    )
    kind = "log" if figures.by_time else "WAL"
    says += f", {human_bytes(figures.to_capture_bytes)} of {kind} since"
    return _releasable(check, verdict, says)


def _apply(figures: TableFigures, limits: GuardConfig) -> Finding:
    check = f"apply {figures.table}"
    if figures.waits_seconds is None:
        return Finding(check, Verdict.OK, f"{figures.table} has everything that was captured")
    verdict = _above(figures.waits_seconds, limits.apply_warn_seconds, limits.apply_act_seconds)
    waits = human_seconds(figures.waits_seconds)
    says = f"changes of {figures.table} wait for {waits}; its gate is {figures.gate}"
    if verdict is Verdict.OK:
        return Finding(check, verdict, says)
    step = "`tidegate apply` brings it up to date; red `report` tasks say what stops it"
    if figures.gate != "open":
        step = "`tidegate gate show --timeline 30` says who closed it and why"
    return Finding(check, verdict, says, step)


def _log(figures: LogFigures, limits: GuardConfig) -> Iterator[Finding]:
    step = "`tidegate maintain` trims it down to what the slowest table needs"
    size = _above(figures.bytes, limits.log_warn_bytes, limits.log_act_bytes)
    says = f"the change log holds {human_bytes(figures.bytes)}"
    yield Finding("change log size", size, says, None if size is Verdict.OK else step)
    if figures.oldest_seconds is None:
        return
    age = _above(figures.oldest_seconds, limits.log_warn_seconds, limits.log_act_seconds)
    says = f"the change log's oldest rows are {human_seconds(figures.oldest_seconds)} old"
    yield Finding("change log age", age, says, None if age is Verdict.OK else step)


def _releasable(check: str, verdict: Verdict, says: str) -> Finding:
    bad = verdict is not Verdict.OK
    return Finding(check, verdict, says, CAPTURE if bad else None, releases=bad)


def _above(value: float, warn: float, act: float) -> Verdict:
    if value >= act:
        return Verdict.ACT
    return Verdict.WARN if value >= warn else Verdict.OK


def worth_saying(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those that are not ok."""
    return tuple(finding for finding in findings if finding.verdict is not Verdict.OK)
