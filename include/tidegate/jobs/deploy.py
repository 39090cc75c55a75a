"""Deploy and undeploy a pipeline: what its transport needs, made and removed by the transport's
``Provisioner``; gates of tables that left; the pipeline's own tables; all of it audited."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, TransportMode
from tidegate.config.secrets import Secrets
from tidegate.config.sinks import SinkType
from tidegate.connectors.protocol import Source
from tidegate.connectors.registry import open_source
from tidegate.connectors.source_status import SLOT_LOST
from tidegate.errors import ConfigError
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate
from tidegate.lake.reports import Reports
from tidegate.lake.retire import forget_removed, retire
from tidegate.names import DEPLOYMENT_PROPERTY
from tidegate.transports.provisioner import EmbeddedProvisioner, deployment_notes


@dataclass(frozen=True, slots=True)
class DeployResult:
    """What deploy did, or with ``dry_run`` would do."""

    pipeline: str
    status: str  # planned | deployed | unchanged
    actions: tuple[str, ...]
    objects: dict[str, str]  # what capture uses at the source; empty while only planned
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
    deployed = DEPLOYMENT_PROPERTY in deployment_notes(catalog, pipeline)
    planned = retire(catalog, pipeline, platform.gate, purge=purge, dry_run=True)
    trail = AuditTrail(catalog, pipeline)
    removes = not dry_run and (deployed or planned.dropped)
    entry = trail.action(Action.UNDEPLOY, pipeline.source.tables, purge=purge)
    with entry if removes else nullcontext():
        return _undeploy(catalog, pipeline, platform, deployed, purge, dry_run, secrets)


def _undeploy(
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    deployed: bool,
    purge: bool,
    dry_run: bool,
    secrets: Secrets | None,
) -> UndeployResult:
    actions: tuple[str, ...] = ()
    if deployed:
        source = open_source(pipeline, platform, secrets)
        try:
            provisioner = EmbeddedProvisioner(source, catalog, pipeline)
            actions = provisioner.teardown(dry_run=dry_run)
        finally:
            source.close()
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
    provisioner = EmbeddedProvisioner(source, catalog, pipeline, new_epoch=new_epoch)
    actions = provisioner.provision() + cleared
    status = "deployed" if actions else "unchanged"
    result = _result(pipeline, status, provisioner, actions, warnings)
    if actions:
        Reports(catalog, pipeline).add("deploy", uuid.uuid4().hex[:12], result.to_dict())
    return result


def _result(
    pipeline: PipelineConfig,
    status: str,
    provisioner: EmbeddedProvisioner,
    actions: tuple[str, ...],
    warnings: tuple[str, ...],
) -> DeployResult:
    start = provisioner.start
    return DeployResult(
        pipeline=pipeline.pipeline_id,
        status=status,
        actions=actions,
        objects=dict(provisioner.objects),
        start=str(start) if start else None,
        warnings=warnings,
    )


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
    provisioner = EmbeddedProvisioner(source, catalog, pipeline)
    actions = provisioner.provision(dry_run=True)
    return _result(pipeline, "planned", provisioner, actions, warnings)
