"""Deploy and undeploy a pipeline: what its transport needs, made and removed by the transport's
``Provisioner``; gates of tables that left, or that the source is not ready for; the pipeline's own
tables; all of it audited."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from pyiceberg.catalog import Catalog

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, TransportMode
from tidegate.config.secrets import Secrets
from tidegate.config.sinks import SinkType
from tidegate.connectors.protocol import Source
from tidegate.connectors.registry import open_source
from tidegate.errors import ConfigError
from tidegate.jobs.readiness import (
    ACTOR,
    NOT_READY,
    HeldTable,
    Readiness,
    hold,
    note_gaps,
    only,
    readiness,
    release,
)
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.facts_ledger import FactsLedger
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
    held: tuple[HeldTable, ...] = ()
    """Left out, each with its reasons; the others are deployed."""

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

    A table that the source is not ready for is held, and the others are deployed.
    ``new_epoch``: the slot is gone for good; begin a new log, then every table needs a sweep.
    """
    refuse_what_is_not_built(pipeline, platform)
    catalog = open_catalog(platform, pipeline)
    source = open_source(pipeline, platform, secrets)
    try:
        found = readiness(source, catalog, pipeline, new_epoch=new_epoch)
    finally:
        source.close()
    source = open_source(only(pipeline, found.ready), platform, secrets)
    try:
        job = _Deploy(source, catalog, pipeline, platform, found, new_epoch)
        return job.planned() if dry_run else job.done()
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


class _Deploy:
    """One call of :func:`deploy`; ``source`` knows the tables alone that it is ready for."""

    def __init__(
        self,
        source: Source,
        catalog: Catalog,
        pipeline: PipelineConfig,
        platform: PlatformConfig,
        found: Readiness,
        new_epoch: bool,
    ) -> None:
        self.source = source
        self.catalog = catalog
        self.pipeline = pipeline
        self.platform = platform
        self.found = found
        self.new_epoch = new_epoch
        self.gate = Gate(catalog, pipeline, platform.gate)
        self.provisioner = EmbeddedProvisioner(source, catalog, pipeline, new_epoch=new_epoch)

    def planned(self) -> DeployResult:
        holds = tuple(f"hold {held.table}: {NOT_READY}" for held in self.found.held)
        return self._result("planned", self.provisioner.provision(dry_run=True) + holds)

    def done(self) -> DeployResult:
        """Gates close before anything changes at the source, and open after it (I8)."""
        action = Action.NEW_EPOCH if self.new_epoch else Action.DEPLOY
        pipeline, gates = self.pipeline, self.platform.gate
        with AuditTrail(self.catalog, pipeline).action(action, pipeline.source.tables) as noting:
            left = forget_removed(self.catalog, pipeline, gates, actor=ACTOR)
            cleared = tuple(f"gate of {table} cleared: it left the pipeline" for table in left)
            held = hold(self.gate, self.found.held)
            faults.point("deploy.after_holds")
            self._note_gaps()
            made = self.provisioner.provision()
            ready = release(self.gate, self.catalog, pipeline, self.found.ready)
            actions = made + cleared + held + ready
            result = self._result("deployed" if actions else "unchanged", actions)
            if actions:
                body = result.to_dict()
                Reports(self.catalog, pipeline).add("deploy", uuid.uuid4().hex[:12], body)
            noting.add(status=result.status, start=result.start)
            if result.held:
                noting.add(held=", ".join(table.table for table in result.held))
        return result

    def _note_gaps(self) -> None:
        """Only where something is about to change at the source."""
        head = self.provisioner.start
        if head is None or self.new_epoch or not self.provisioner.provision(dry_run=True):
            return
        ready = only(self.pipeline, self.found.ready)
        note_gaps(self.source, FactsLedger(self.catalog, self.pipeline), ready, head)

    def _result(self, status: str, actions: tuple[str, ...]) -> DeployResult:
        start = self.provisioner.start
        return DeployResult(
            pipeline=self.pipeline.pipeline_id,
            status=status,
            actions=actions,
            objects=dict(self.provisioner.objects),
            start=str(start) if start else None,
            warnings=self.found.warnings,
            held=self.found.held,
        )
