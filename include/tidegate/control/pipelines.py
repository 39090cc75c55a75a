"""Pipelines: files in the pipelines folder, made, listed, described, deleted (I10)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError

from tidegate.config.document import read_document
from tidegate.config.folder import declared_id, pipeline_files, pipelines_dir
from tidegate.config.loader import load_pipeline
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.shown import shown
from tidegate.control.findings import Finding
from tidegate.control.records import PipelineStatus
from tidegate.control.running import Running, record
from tidegate.control.status import status
from tidegate.control.validation import validate_pipeline
from tidegate.errors import ConfigError, HeldError, TidegateError
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.pauses import Pauses
from tidegate.names import DEPLOYMENT_PROPERTY

BROKEN: Final = "broken"
_MODE: Final = 0o640
"""Whoever writes a password into the file has not shown it to everyone on the machine."""


@dataclass(frozen=True, slots=True)
class PipelineSummary:
    """One file of the folder."""

    pipeline_id: str
    file: str
    state: str  # running (it may work) | stopped | broken
    deployed: bool
    source_type: str | None = None
    database: str | None = None
    tables: int = 0
    owner: str | None = None
    problem: str | None = None  # why it is broken
    at_work: tuple[str, ...] = ()  # what holds tables at this moment: apply, sweep, …


@dataclass(frozen=True, slots=True)
class TableTarget:
    """Where one table goes."""

    table: str
    lake_table: str
    write_mode: str
    soft_delete: bool
    partition_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PipelineDescription:
    """A pipeline as its file describes it, and how it is. No secret is part of it (I9)."""

    pipeline_id: str
    file: str | None
    running: Running
    deployed: bool
    source_type: str
    host: str
    port: int
    database: str
    username: str
    connection_id: str | None
    slot: str
    publication: str
    namespace: str
    control_namespace: str
    schedules: dict[str, str | None]
    sinks: tuple[str, ...]
    owner: str
    tags: tuple[str, ...]
    tables: tuple[TableTarget, ...]
    status: PipelineStatus


@dataclass(frozen=True, slots=True)
class Created:
    """A pipeline that joined the folder."""

    pipeline_id: str
    file: str
    status: str  # created | planned
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Deleted:
    """A pipeline that left the folder. Its lake tables stay unless undeploy purged them."""

    pipeline_id: str
    file: str
    status: str  # deleted | planned


def create(
    file: Path,
    platform: PlatformConfig,
    folder: Path | None = None,
    *,
    offline: bool = False,
    dry_run: bool = False,
    with_secrets: Callable[[Path], PipelineConfig] = load_pipeline,
) -> Created:
    """Validate ``file`` and put it into the folder as ``<pipeline_id>.yaml``; nothing is deployed.

    Refused while the source is not ready (unless ``offline``), or where the id is taken.
    ``with_secrets`` loads it as whoever asks its source needs it: with its connection.
    """
    folder = pipelines_dir() if folder is None else folder
    pipeline = load_pipeline(file, resolve_secrets=False) if offline else with_secrets(file)
    _refuse_relative_certificate(file)
    report = validate_pipeline(pipeline, platform, offline=offline)
    if not report.ok:
        told = "; ".join(f"{f.table or 'pipeline'}: {f.message}" for f in report.findings)
        raise ConfigError(
            "pipelines.not_ready",
            f"{pipeline.pipeline_id} is not ready: {told}",
            hint=f"`tidegate validate {file}` shows each problem with its fix",
        )
    target = folder / f"{pipeline.pipeline_id}.yaml"
    _refuse_taken(pipeline.pipeline_id, target, folder)
    if dry_run:
        return Created(pipeline.pipeline_id, str(target), "planned", report.findings)
    trail = AuditTrail(open_catalog(platform, pipeline), pipeline)
    with trail.action(Action.CREATE, pipeline.source.tables, file=str(target)):
        _place(file.read_bytes(), target)
    return Created(pipeline.pipeline_id, str(target), "created", report.findings)


def list_pipelines(
    platform: PlatformConfig, folder: Path | None = None
) -> tuple[PipelineSummary, ...]:
    """Every file of the folder; a broken one is listed with its problem. No source is asked."""
    folder = pipelines_dir() if folder is None else folder
    return tuple(_summary(file, platform) for file in pipeline_files(folder))


def describe(
    pipeline: PipelineConfig, platform: PlatformConfig, file: Path | None = None
) -> PipelineDescription:
    """What the file says and where the pipeline stands, from the lake alone."""
    catalog = open_catalog(platform, pipeline)
    source, told = pipeline.source, shown(pipeline)
    return PipelineDescription(
        pipeline_id=pipeline.pipeline_id,
        file=None if file is None else str(file),
        running=record(pipeline.pipeline_id, Pauses(catalog, pipeline).current()),
        deployed=is_deployed(catalog, pipeline),
        source_type=source.source_type,
        host=told["source"]["host"],
        port=source.port,
        database=told["source"]["database"],
        username=told["source"]["username"],
        connection_id=source.connection_id,
        slot=pipeline.slot_name,
        publication=pipeline.publication_name,
        namespace=pipeline.namespace,
        control_namespace=pipeline.control_namespace,
        schedules=pipeline.schedules.model_dump(),
        sinks=tuple(f"{s.sink_id} ({s.sink_type.value})" for s in pipeline.sinks if s.enabled),
        owner=told["owner"],
        tags=tuple(told["tags"]),
        tables=tuple(
            TableTarget(
                t.source,
                ".".join(t.identifier),
                t.write_mode.value,
                t.soft_delete,
                t.partition_by,
            )
            for t in pipeline.targets
        ),
        status=status(pipeline, platform, ask_source=False),
    )


def delete(
    pipeline: PipelineConfig, platform: PlatformConfig, file: Path, *, dry_run: bool = False
) -> Deleted:
    """Take the file out of the folder: its Dags go with it. Refused while the pipeline is deployed
    (its slot would keep the source's WAL for ever): undeploy first."""
    catalog = open_catalog(platform, pipeline)
    if is_deployed(catalog, pipeline):
        raise HeldError(
            "pipelines.deployed",
            f"{pipeline.pipeline_id} is deployed: its slot and change log would be left behind",
            hint="say --undeploy to remove them too (lake tables stay), or `tidegate undeploy`",
        )
    if dry_run:
        return Deleted(pipeline.pipeline_id, str(file), "planned")
    trail = AuditTrail(catalog, pipeline)
    with trail.action(Action.DELETE, pipeline.source.tables, file=str(file)):
        file.unlink(missing_ok=True)
    return Deleted(pipeline.pipeline_id, str(file), "deleted")


def is_deployed(catalog: Catalog, pipeline: PipelineConfig) -> bool:
    """Whether anything of a deployment is there, half of one included."""
    if load(catalog, ChangeLog(catalog, pipeline).identifier) is not None:
        return True
    try:
        notes = catalog.load_namespace_properties((pipeline.control_namespace,))
    except NoSuchNamespaceError:
        return False
    return DEPLOYMENT_PROPERTY in notes


def _summary(file: Path, platform: PlatformConfig) -> PipelineSummary:
    try:
        pipeline = load_pipeline(file, resolve_secrets=False)
        catalog = open_catalog(platform, pipeline)
        word = record(pipeline.pipeline_id, Pauses(catalog, pipeline).current())
        deployed = is_deployed(catalog, pipeline)
        at_work = Gate(catalog, pipeline, platform.gate).at_work()
    except TidegateError as error:
        name = declared_id(file) or file.stem
        return PipelineSummary(name, str(file), BROKEN, False, problem=error.message)
    return PipelineSummary(
        pipeline_id=pipeline.pipeline_id,
        file=str(file),
        state=word.state,
        deployed=deployed,
        source_type=pipeline.source.source_type,
        database=shown(pipeline)["source"]["database"],
        tables=len(pipeline.source.tables),
        owner=shown(pipeline)["owner"],
        at_work=at_work,
    )


def _refuse_taken(pipeline_id: str, target: Path, folder: Path) -> None:
    known = pipeline_files(folder) if folder.is_dir() else []
    other = next((f for f in known if f == target or declared_id(f) == pipeline_id), None)
    if other is not None:
        raise _taken(pipeline_id, other)


def _taken(pipeline_id: str, file: Path) -> ConfigError:
    return ConfigError(
        "pipelines.exists",
        f"there is a pipeline {pipeline_id} already: {file}",
        hint="edit that file, or give this pipeline another pipeline_id",
    )


def _refuse_relative_certificate(file: Path) -> None:
    """It is relative to the file, which is about to be copied elsewhere."""
    source = read_document(file).data.get("source")
    certificate = source.get("sslrootcert") if isinstance(source, dict) else None
    if isinstance(certificate, str) and not Path(certificate).is_absolute():
        raise ConfigError(
            "pipelines.relative_path",
            f"source.sslrootcert {certificate} is relative to {file}, and the file is copied",
            hint="write an absolute path",
        )


def _place(text: bytes, target: Path) -> None:
    """Whole or not at all, and never over another: Airflow may look at any moment."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    descriptor = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.link(staging, target)
    except FileExistsError:
        raise _taken(target.stem, target) from None
    finally:
        staging.unlink(missing_ok=True)
