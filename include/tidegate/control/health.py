"""Health: what a pipeline needs, part by part, ok, degraded or failed (I10).

``/readyz`` says what ``tidegate health`` says. Every part is looked at, whatever the others say;
a part that cannot be asked is failed, never an exception.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

from pyiceberg.io import load_file_io

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.records import PipelineStatus, TableStatus
from tidegate.control.specified_health import PartitionLag, SinkHealth, SourceHealth, specified
from tidegate.control.status import status
from tidegate.errors import TidegateError
from tidegate.lake.catalog import open_catalog, resolve
from tidegate.redaction import redacted
from tidegate.transports.guard import worth_saying

OK: Final = "ok"
DEGRADED: Final = "degraded"
FAILED: Final = "failed"
_ORDER: Final = (OK, DEGRADED, FAILED)
AIRFLOW_VARIABLE: Final = "AIRFLOW__API__BASE_URL"
"""Airflow's own setting; where it is set, Airflow is part of the pipeline's health."""
AIRFLOW_SECONDS: Final = 5.0


def worst(states: Iterable[str]) -> str:
    return max(states, key=_ORDER.index, default=OK)


@dataclass(frozen=True, slots=True)
class Component:
    """One part."""

    name: str  # catalog | storage | source | change_log | writers | gates | airflow
    status: str  # ok | degraded | failed
    detail: str
    hint: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Health:
    """All parts; the worst of them is the whole's."""

    pipeline_id: str | None
    components: tuple[Component, ...]
    source: SourceHealth | None = None
    sinks: tuple[SinkHealth, ...] = ()
    consumer_lag: tuple[PartitionLag, ...] = ()

    @property
    def status(self) -> str:
        return worst(part.status for part in self.components)

    @property
    def ok(self) -> bool:
        """Whether work can go on; degraded parts do not stop it."""
        return self.status != FAILED


def document(found: Health) -> dict[str, Any]:
    """What `tidegate health --json` prints."""
    return {"status": found.status} | {f.name: getattr(found, f.name) for f in fields(found)}


Answer = tuple[str, str, str | None]
"""Status, detail, hint."""


def health(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> Health:
    """The platform's health; with a pipeline also its source's, change log's and gates'."""
    parts = [
        _asked("catalog", lambda: _catalog(platform, pipeline)),
        _asked("storage", lambda: _storage(platform, pipeline)),
    ]
    seen = None
    if pipeline is not None and parts[0].status != FAILED:
        own, seen = pipeline_parts(pipeline, platform)
        parts += own
    url = os.environ.get(AIRFLOW_VARIABLE)
    if url:
        parts.append(_asked("airflow", lambda: _airflow(url)))
    if pipeline is None:
        return Health(None, tuple(parts))
    told = specified(pipeline, {part.name: part.status != FAILED for part in parts}, seen)
    lag = told.consumer_lag
    return Health(pipeline.pipeline_id, tuple(parts), told.source, told.sinks, lag)


def check_catalog(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> Component:
    """Whether the catalog answers."""
    return _asked("catalog", lambda: _catalog(platform, pipeline))


def check_storage(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> Component:
    """Whether the warehouse can be written, read and cleaned."""
    return _asked("storage", lambda: _storage(platform, pipeline))


def check_airflow(url: str) -> Component:
    """What Airflow says of itself."""
    return _asked("airflow", lambda: _airflow(url))


def _asked(name: str, ask: Callable[[], Answer]) -> Component:
    began = time.monotonic()
    try:
        answer = ask()
    except TidegateError as error:
        answer = (FAILED, f"{error.message} [{error.code}]", error.hint)
    except Exception as error:  # noqa: BLE001 - a part that cannot be asked is failed; only its kind is told (I9)
        answer = (FAILED, f"{type(error).__name__}", "is it configured and reachable from here?")
    return Component(name, *answer, seconds=round(time.monotonic() - began, 3))


def _catalog(platform: PlatformConfig, pipeline: PipelineConfig | None) -> Answer:
    catalog = open_catalog(platform, pipeline)
    try:
        count = len(catalog.list_namespaces())
    finally:
        catalog.close()
    return OK, f"{resolve(platform, pipeline).type.value}, {count} namespaces", None


def _storage(platform: PlatformConfig, pipeline: PipelineConfig | None) -> Answer:
    """A small file there and back: listing alone does not show that commits can be written."""
    place = resolve(platform, pipeline)
    location = f"{place.warehouse}/.tidegate/probe-{uuid.uuid4().hex}"
    io = load_file_io(place.properties, location)
    with io.new_output(location).create() as out:
        out.write(b"tidegate")
    with io.new_input(location).open() as found:
        same = found.read() == b"tidegate"
    io.delete(location)
    kind = place.warehouse.split("://", 1)[0]
    if not same:
        return FAILED, f"{kind}: what was written is not what is read", "look at the storage"
    return OK, f"{kind}: written, read and deleted", None


def pipeline_parts(
    pipeline: PipelineConfig, platform: PlatformConfig
) -> tuple[list[Component], PipelineStatus | None]:
    """Source, change log, writers and gates, and the status they were read from."""
    began = time.monotonic()
    try:
        seen = status(pipeline, platform)
    except TidegateError as error:
        told = f"{error.message} [{error.code}]"
        return [Component("change_log", FAILED, told, error.hint)], None
    spent = round(time.monotonic() - began, 3)
    answers = {
        "source": _source(seen),
        "change_log": _log(seen),
        "writers": _writers(seen),
        "gates": _gates(seen),
    }
    return [Component(name, *answer, seconds=spent) for name, answer in answers.items()], seen


def _source(seen: PipelineStatus) -> Answer:
    side = seen.source
    assert side is not None  # it was asked
    if not side.reachable:
        return FAILED, side.problem or "not reachable", "is the server up and reachable from here?"
    found = worth_saying(seen.guard.findings) if seen.guard is not None else ()
    if not found:
        return OK, "reachable" if side.by_time else f"reachable, slot {side.slot_state}", None
    assert seen.guard is not None
    figures = seen.guard.figures.source
    lost = figures is not None and figures.lost is not None
    told = "; ".join(finding.says for finding in found)
    return FAILED if lost else DEGRADED, told, found[0].next


def _log(seen: PipelineStatus) -> Answer:
    word = seen.running
    if not seen.deployed:
        return DEGRADED, "not deployed", "`tidegate deploy`"
    if word is not None and word.stopped:
        told = f"stopped by {word.actor}: {word.reason}"
        return DEGRADED, told, f"`tidegate start {seen.pipeline_id}`; WAL is kept until then"
    behind = "" if seen.capture_lag_bytes is None else f", {seen.capture_lag_bytes:,} bytes behind"
    return OK, f"captured through {seen.captured_through}{behind}", None


def _writers(seen: PipelineStatus) -> Answer:
    """What each table's last apply or sweep came to. A held table has its reason at its gate."""
    failures = [(table, failure) for table in seen.tables if (failure := _failure(table))]
    if not failures:
        return OK, f"{len(seen.tables)} tables", None
    errors = [(table.table, failure.get("error") or {}) for table, failure in failures]
    told = "; ".join(f"{name}: {error.get('message', FAILED)}" for name, error in errors)
    hints = (error.get("hint") for _, error in errors)
    return FAILED, told, next((hint for hint in hints if hint), "`tidegate status` shows each")


def _failure(table: TableStatus) -> dict[str, Any] | None:
    """The failed attempt that nothing has made good since."""
    newest = max(
        (last for last in (table.last_apply, table.last_sweep) if last is not None),
        key=lambda last: last["at"],
        default=None,
    )
    if newest is None or newest.get("status") != FAILED or table.gate.state == "held":
        return None
    written_since = table.snapshot_at is not None and table.snapshot_at > newest["at"]
    return None if written_since or table.lag_bytes == 0 else newest


def _gates(seen: PipelineStatus) -> Answer:
    held = [t for t in seen.tables if t.gate.state == "held"]
    waiting = [t for t in seen.tables if t.needs or t.dead_letters]
    if held:
        told = "; ".join(f"{t.table} held: {t.gate.reason or 'no reason given'}" for t in held)
        return DEGRADED, told, "`tidegate gate show` says who closed them and why"
    if waiting and seen.deployed:
        told = "; ".join(
            f"{t.table} needs {t.needs}" if t.needs else f"{t.table}: {t.dead_letters} dead letters"
            for t in waiting
        )
        return DEGRADED, told, "`tidegate status` shows each table"
    return OK, f"{len(seen.tables)} tables", None


def _airflow(url: str) -> Answer:
    address = f"{url.rstrip('/')}/api/v2/monitor/health"
    try:
        with urllib.request.urlopen(address, timeout=AIRFLOW_SECONDS) as response:
            found = json.load(response)
    except (urllib.error.URLError, OSError, ValueError) as error:
        told = f"{redacted(address)} does not answer ({type(error).__name__})"
        return FAILED, told, f"is Airflow's API server up? {AIRFLOW_VARIABLE} says where"
    states = {name: part.get("status") for name, part in found.items() if isinstance(part, dict)}
    bad = [name for name, state in states.items() if state not in ("healthy", None)]
    if bad:
        grave = FAILED if {"metadatabase", "scheduler"} & set(bad) else DEGRADED
        return grave, f"not healthy: {', '.join(bad)}", "look at that process's log"
    return OK, f"healthy: {', '.join(name for name, state in states.items() if state)}", None
