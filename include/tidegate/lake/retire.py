"""Tables that left a pipeline, and retiring a whole pipeline, in the lake.

Lake tables are the user's data: they stay unless ``purge`` says otherwise (then also those that the
file listed once, and no others: ``purge.py``), and so does the audit trail, which would otherwise
go with the entry that says who retired the pipeline. What Tidegate made for itself (change log,
gate journal, schema history, reports, proofs, dead letters) goes with the pipeline.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NamespaceNotEmptyError

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import GateConfig
from tidegate.lake.approvals import Approvals
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import load
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.facts_ledger import FactsLedger
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.gate_journal import GateJournal
from tidegate.lake.pauses import Pauses
from tidegate.lake.proofs import Proofs
from tidegate.lake.purge import own_tables
from tidegate.lake.purge import purge as purge_table
from tidegate.lake.registrations import Registrations
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory


@dataclass(frozen=True, slots=True)
class Retired:
    """Tables by what became of them, as ``namespace.name``."""

    dropped: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def forget_removed(
    catalog: Catalog, pipeline: PipelineConfig, settings: GateConfig, *, actor: str
) -> tuple[str, ...]:
    """Clear the gates of tables that the pipeline's file no longer lists; which they were.

    A sweep of theirs is given up, a writer in flight is waited for (I4). Their lake tables stay;
    their change-log rows go by retention. Idempotent.
    """
    gate = Gate(catalog, pipeline, settings)
    listed = set(pipeline.source.tables)
    left = tuple(
        name
        for name, known in gate.states().items()
        if name not in listed and (known.state is not GateState.OPEN or known.lease is not None)
    )
    if left:
        gate = Gate(catalog, _listing(pipeline, left), settings)
        gate.open(left, "the table left the pipeline", actor, abandon=True)
        with gate.lease(f"remove-{uuid.uuid4().hex[:8]}", left, "remove"):
            pass  # whoever was writing has ended
    return left


def retire(
    catalog: Catalog,
    pipeline: PipelineConfig,
    settings: GateConfig,
    *,
    purge: bool = False,
    dry_run: bool = False,
) -> Retired:
    """Drop a pipeline's control tables, and with ``purge`` its lake tables and audit trail too.

    Waits for writers in flight; a table being swept is refused (abandon the sweep first). Run it
    after the source's slot is gone. Idempotent: a killed run is finished by the next.
    """
    lake = own_tables(catalog, pipeline)
    control = _there(catalog, _control(catalog, pipeline))
    trail = _there(catalog, [AuditTrail(catalog, pipeline).identifier])
    gone = [*lake, *control, *trail] if purge else control
    if gone and not dry_run:
        gate = Gate(catalog, pipeline, settings)
        run = f"retire-{uuid.uuid4().hex[:8]}"
        with gate.lease(run, pipeline.source.tables, "retire") as lease:
            for identifier in gone:
                if identifier != gate.identifier:
                    purge_table(catalog, identifier)
            # Last, and even if it was not there: the lease made it, and it keeps others away.
            lease.stop()  # a renewal would make it again
            purge_table(catalog, gate.identifier)
    if not dry_run:
        _drop_namespace(catalog, pipeline.control_namespace)
        if purge:
            _drop_namespace(catalog, pipeline.namespace)
    return Retired(_names(gone), () if purge else _names(lake))


def _control(catalog: Catalog, pipeline: PipelineConfig) -> list[tuple[str, str]]:
    """What Tidegate made for itself, in the order in which it goes."""
    return [
        ChangeLog(catalog, pipeline).identifier,
        SchemaHistory(catalog, pipeline).identifier,
        Approvals(catalog, pipeline).identifier,
        Registrations(catalog, pipeline).identifier,
        FactsLedger(catalog, pipeline).identifier,
        Reports(catalog, pipeline).identifier,
        Proofs(catalog, pipeline).identifier,
        DeadLetters(catalog, pipeline).identifier,
        Pauses(catalog, pipeline).identifier,
        GateJournal(catalog, pipeline).identifier,
    ]


def _there(catalog: Catalog, identifiers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [identifier for identifier in identifiers if load(catalog, identifier) is not None]


def _names(identifiers: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(".".join(identifier) for identifier in identifiers)


def _listing(pipeline: PipelineConfig, tables: tuple[str, ...]) -> PipelineConfig:
    """The pipeline as it was while it listed ``tables``: the gate knows no others."""
    source = pipeline.source.model_copy(update={"tables": (*pipeline.source.tables, *tables)})
    return pipeline.model_copy(update={"source": source})


def _drop_namespace(catalog: Catalog, namespace: str) -> None:
    if not catalog.namespace_exists((namespace,)):
        return
    try:
        catalog.drop_namespace((namespace,))
    except NamespaceNotEmptyError:
        return  # other pipelines' or the user's tables live there too
