"""Deploy and undeploy a pipeline: publication, slot, change log; exactly ours comes away again.

The control namespace carries the deployment's id, and, before a slot is made, the slot's name:
after a crash at any point the next deploy knows what is ours (I3).
"""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, TransportMode
from tidegate.config.secrets import Secrets
from tidegate.config.sinks import SinkType
from tidegate.connectors.protocol import Source
from tidegate.connectors.registry import open_source
from tidegate.connectors.source_status import SLOT_LOST
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, FatalError
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import ensure_namespace, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.reports import Reports
from tidegate.lake.retire import forget_removed, retire
from tidegate.names import PROPERTY_PREFIX

DEPLOYMENT_PROPERTY: Final = f"{PROPERTY_PREFIX}deployment"
SLOT_PROPERTY: Final = f"{PROPERTY_PREFIX}slot"


@dataclass(frozen=True, slots=True)
class DeployResult:
    """What deploy did, or with ``dry_run`` would do."""

    pipeline: str
    status: str  # planned | deployed | unchanged
    actions: tuple[str, ...]
    publication: str
    slot: str
    start: str | None  # where the change log stands
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class UndeployResult:
    """What undeploy removed."""

    pipeline: str
    status: str  # planned | removed
    actions: tuple[str, ...]
    kept: tuple[str, ...] = ()  # lake tables

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def deploy(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    dry_run: bool = False,
    *,
    new_epoch: bool = False,
    secrets: Secrets | None = None,
) -> DeployResult:
    """Make what capture needs; again after tables were added or removed: only the difference.

    ``new_epoch``: the slot is gone for good; begin a new log, then every table needs a sweep.
    """
    refuse_what_is_not_built(pipeline, platform)
    source = open_source(pipeline, platform, secrets)
    try:
        warnings = _check(source, new_epoch)
        catalog = open_catalog(platform, pipeline)
        if dry_run:
            return _planned(source, catalog, pipeline, warnings)
        action = Action.NEW_EPOCH if new_epoch else Action.DEPLOY
        with AuditTrail(catalog, pipeline).action(action, pipeline.source.tables) as noting:
            left = forget_removed(catalog, pipeline, platform.gate, actor="deploy")
            cleared = tuple(f"gate of {table} cleared: it left the pipeline" for table in left)
            result = _deploy(source, catalog, pipeline, warnings, new_epoch, cleared)
            noting.add(status=result.status, start=result.start)
        return result
    finally:
        source.close()


def undeploy(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    purge: bool = False,
    dry_run: bool = False,
    secrets: Secrets | None = None,
) -> UndeployResult:
    """Remove what deploy and the pipeline's runs made for themselves: publication, slot, change
    log, gate journal, schema history, reports. Lake tables and the audit trail stay, unless
    ``purge``.

    Killed anywhere, the next call finishes it: what is ours at the source is noted until it is
    gone, and the lake's part comes after it.
    """
    catalog = open_catalog(platform, pipeline)
    Gate(catalog, pipeline, platform.gate).refuse_swept(pipeline.source.tables)
    notes = _notes(catalog, pipeline)
    planned = retire(catalog, pipeline, platform.gate, purge=purge, dry_run=True)
    trail = AuditTrail(catalog, pipeline)
    removes = not dry_run and (DEPLOYMENT_PROPERTY in notes or planned.dropped)
    entry = trail.action(Action.UNDEPLOY, pipeline.source.tables, purge=purge)
    with entry if removes else nullcontext():
        return _undeploy(catalog, pipeline, platform, notes, purge, dry_run, secrets)


def _undeploy(
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    notes: dict[str, str],
    purge: bool,
    dry_run: bool,
    secrets: Secrets | None,
) -> UndeployResult:
    deployment = notes.get(DEPLOYMENT_PROPERTY)
    actions: tuple[str, ...] = ()
    if deployment is not None:
        source = open_source(pipeline, platform, secrets)
        try:
            ours = notes.get(SLOT_PROPERTY) == pipeline.slot_name
            actions = source.deprovision(deployment, slot_is_ours=ours, dry_run=dry_run)
        finally:
            source.close()
    faults.point("undeploy.after_source")
    kept = set(notes) & {DEPLOYMENT_PROPERTY, SLOT_PROPERTY}
    if kept and not dry_run:
        catalog.update_namespace_properties(pipeline.control_namespace, removals=kept)
    retired = retire(catalog, pipeline, platform.gate, purge=purge, dry_run=dry_run)
    actions += tuple(f"table {name} dropped" for name in retired.dropped)
    status = "planned" if dry_run else "removed"
    return UndeployResult(pipeline.pipeline_id, status, actions, retired.kept)


def refuse_what_is_not_built(pipeline: PipelineConfig, platform: PlatformConfig) -> None:
    """Sinks and transports that validate but do not exist yet."""
    if platform.transport_mode is not TransportMode.EMBEDDED:
        raise ConfigError(
            "deploy.transport_not_built",
            f"transport_mode {platform.transport_mode.value} is not built yet",
            hint="set transport_mode: embedded in platform.yaml",
        )
    for sink in pipeline.sinks:
        if sink.enabled and sink.sink_type is not SinkType.ICEBERG:
            raise ConfigError(
                "deploy.sink_not_built",
                f"sink {sink.sink_id}: sink_type {sink.sink_type.value} is not built yet",
                hint=f"set enabled: false for {sink.sink_id}",
            )


def _deploy(
    source: Source,
    catalog: Catalog,
    pipeline: PipelineConfig,
    warnings: tuple[str, ...],
    new_epoch: bool,
    cleared: tuple[str, ...],
) -> DeployResult:
    log = ChangeLog(catalog, pipeline)
    notes = _noted(catalog, pipeline)
    deployment = notes[DEPLOYMENT_PROPERTY]
    ours = notes.get(SLOT_PROPERTY) == pipeline.slot_name
    there = source.status().slot is not None
    if log.exists() and not there and not new_epoch:
        raise FatalError(
            "deploy.slot_lost",
            f"the pipeline was deployed, but its slot {pipeline.slot_name} is gone",
            hint="changes since then are lost: `tidegate recover` makes a new slot and sweeps"
            f" {', '.join(pipeline.source.tables)}",
        )
    if not there and not ours:
        # Before the slot exists: what is made from here on is ours, even if we die (I3).
        _note(catalog, pipeline, SLOT_PROPERTY, pipeline.slot_name)
        ours = True
    made = source.provision(deployment, slot_is_ours=ours, renew=new_epoch)
    actions = made.actions + cleared
    begins = new_epoch or not log.exists()
    through = _ensure_log(log, made.start, new_epoch)
    if through == made.start and (actions or begins):
        actions += ("change log ready",)
    result = DeployResult(
        pipeline=pipeline.pipeline_id,
        status="deployed" if actions else "unchanged",
        actions=actions,
        publication=made.publication,
        slot=made.slot,
        start=str(through),
        warnings=warnings,
    )
    if actions:
        Reports(catalog, pipeline).add("deploy", uuid.uuid4().hex[:12], result.to_dict())
    return result


def _ensure_log(log: ChangeLog, start: Position, new_epoch: bool) -> Position:
    """A log that exists keeps its epoch: the slot's confirmed point has moved on since then."""
    if not log.exists():
        return log.create(start).captured_through
    if new_epoch:
        return log.begin_epoch(start).captured_through
    return log.head().captured_through


def _check(source: Source, new_epoch: bool) -> tuple[str, ...]:
    """Errors stop the deployment, all of them at once; a new epoch mends a lost slot."""
    report = source.validate()
    errors = [p for p in report.errors if not (new_epoch and p.code.endswith(f".{SLOT_LOST}"))]
    if errors:
        found = "; ".join(str(problem) for problem in errors)
        raise ConfigError(
            "deploy.not_ready",
            f"the source is not ready: {found}",
            hint="run the SQL given with each problem, then deploy again",
        )
    return tuple(str(problem) for problem in report.warnings)


def _planned(
    source: Source, catalog: Catalog, pipeline: PipelineConfig, warnings: tuple[str, ...]
) -> DeployResult:
    deployment = _notes(catalog, pipeline).get(DEPLOYMENT_PROPERTY, "")
    actions = source.plan(deployment)
    log = ChangeLog(catalog, pipeline)
    start = str(log.head().captured_through) if log.exists() else None
    if start is None:
        actions += ("create the change log",)
    return DeployResult(
        pipeline.pipeline_id,
        "planned",
        actions,
        pipeline.publication_name,
        pipeline.slot_name,
        start,
        warnings,
    )


def _notes(catalog: Catalog, pipeline: PipelineConfig) -> dict[str, str]:
    try:
        return {**catalog.load_namespace_properties(pipeline.control_namespace)}
    except NoSuchNamespaceError:
        return {}


def _noted(catalog: Catalog, pipeline: PipelineConfig) -> dict[str, str]:
    """The notes, with a deployment id among them."""
    ensure_namespace(catalog, pipeline.control_namespace)
    if DEPLOYMENT_PROPERTY not in _notes(catalog, pipeline):
        _note(catalog, pipeline, DEPLOYMENT_PROPERTY, uuid.uuid4().hex)
    return _notes(catalog, pipeline)


def _note(catalog: Catalog, pipeline: PipelineConfig, name: str, value: str) -> None:
    catalog.update_namespace_properties(pipeline.control_namespace, updates={name: value})
