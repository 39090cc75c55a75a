"""What the schema registry has of a pipeline's schemas, from our own records: it is not asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.records import RegistryStatus
from tidegate.control.tables import known_tables
from tidegate.lake.catalog import open_catalog
from tidegate.lake.registrations import Known, Registrations, Verdict, registry_of
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.subjects import Entry, Subjects, pending

PENDING = "pending"


@dataclass(frozen=True, slots=True)
class RegistrationRow:
    """One schema of a table under one subject."""

    table: str
    schema_id: str
    subject: str
    status: str  # registered | refused | pending
    id: int | None
    version: int | None
    compatible: bool | None  # with the newest one before it; None: there was none, or not asked
    reasons: tuple[str, ...]
    recorded_at: datetime | None


def registrations(
    pipeline: PipelineConfig, platform: PlatformConfig, tables: Sequence[str] | None = None
) -> list[RegistrationRow]:
    """Every schema ever seen, table by table, in log order, with the registry's word on it."""
    catalog = open_catalog(platform, pipeline)
    names = known_tables(pipeline, tables)
    known = Registrations(catalog, pipeline).known(registry_of(platform))
    return [_row(e, known) for one in _entries(catalog, pipeline, platform, names) for e in one]


def registry_status(
    catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig
) -> RegistryStatus | None:
    """Counts, and why the registry did not answer the last time; None where none is used."""
    if platform.registry_url is None:
        return None
    known = Registrations(catalog, pipeline).known(platform.registry_url)
    tables = list(_entries(catalog, pipeline, platform))
    refused = [one for one in known.said.values() if one.verdict is Verdict.REFUSED]
    waiting = [entry for one in tables for entry in pending(one, known)]
    return RegistryStatus(
        url=platform.registry_url,
        registered=sum(known.registered(e.subject, e.schema_id) for one in tables for e in one),
        pending=len(waiting),
        refused=len(refused),
        problem=None if known.problem is None else known.problem.to_dict(),
        problem_since=known.problem_since,
    )


def said_of(
    catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig
) -> dict[tuple[str, str], str]:
    """The kept opinions by table and schema, in words; empty where there is no registry."""
    if platform.registry_url is None:
        return {}
    found: dict[tuple[str, str], str] = {}
    for one in Registrations(catalog, pipeline).known(platform.registry_url).said.values():
        key = (one.table, one.schema_id)
        if one.compatible is False:
            words = "; ".join(one.reasons)
            found[key] = f"incompatible with {one.subject}" + (f": {words}" if words else "")
        elif one.compatible:
            found.setdefault(key, "compatible")
    return found


def _entries(
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    tables: Sequence[str] | None = None,
) -> list[tuple[Entry, ...]]:
    subjects = Subjects(pipeline, platform.schema_registry)
    return list(subjects.history(SchemaHistory(catalog, pipeline), tables))


def _row(entry: Entry, known: Known) -> RegistrationRow:
    said = known.said.get((entry.subject, entry.schema_id))
    return RegistrationRow(
        table=entry.table,
        schema_id=entry.schema_id,
        subject=entry.subject,
        status=PENDING if said is None else said.verdict.value,
        id=said.id if said else None,
        version=said.version if said else None,
        compatible=said.compatible if said else None,
        reasons=said.reasons if said else (),
        recorded_at=said.recorded_at if said else None,
    )
