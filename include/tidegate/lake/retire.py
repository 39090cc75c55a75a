"""Taking a table out of a pipeline, and retiring a whole pipeline, in the lake.

Lake tables are the user's data: they stay unless ``purge`` says otherwise. What Tidegate made for
itself (change log, gate journal, schema history, reports) goes with the pipeline.
"""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import dataclass

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NamespaceNotEmptyError

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import GateConfig
from tidegate.lake.catalog import load
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import Gate
from tidegate.lake.ledger import drop
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import TableId


@dataclass(frozen=True, slots=True)
class Retired:
    """Tables by what became of them, as ``namespace.name``."""

    dropped: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def remove_table(
    catalog: Catalog,
    pipeline: PipelineConfig,
    settings: GateConfig,
    table: TableId,
    *,
    actor: str,
    purge: bool = False,
) -> Retired:
    """Clear a table's gate and, with ``purge``, drop its lake table. Waits for its writer (I4).

    Its change-log rows go by retention once the pipeline no longer lists it. Idempotent.
    """
    name = str(table)
    gate = Gate(catalog, _listing(pipeline, name), settings)
    reason = "the table leaves the pipeline"
    gate.open([name], reason, actor, abandon=True)
    with gate.lease(f"remove-{uuid.uuid4().hex[:8]}", [name], "remove"):
        return _lake_table(catalog, pipeline.target(table).identifier, purge)


def retire(
    catalog: Catalog,
    pipeline: PipelineConfig,
    settings: GateConfig,
    *,
    purge: bool = False,
) -> Retired:
    """Drop a pipeline's control tables, and with ``purge`` its lake tables too.

    Waits for writers in flight; a table being swept is refused (abandon the sweep first). Run it
    after the source's slot is gone. Idempotent: a killed run is finished by the next.
    """
    gate = Gate(catalog, pipeline, settings)
    run = f"retire-{uuid.uuid4().hex[:8]}"
    found: list[Retired] = []
    tables = pipeline.source.tables
    with gate.lease(run, tables, "retire") if tables else nullcontext():
        for target in pipeline.targets:
            found.append(_lake_table(catalog, target.identifier, purge))
        control = [
            ChangeLog(catalog, pipeline).identifier,
            SchemaHistory(catalog, pipeline).identifier,
            Reports(catalog, pipeline).identifier,
            gate.identifier,  # last: it is what keeps others away
        ]
        gone = [".".join(identifier) for identifier in control if drop(catalog, identifier)]
    _drop_namespace(catalog, pipeline.control_namespace)
    if purge:
        _drop_namespace(catalog, pipeline.namespace)
    return Retired(
        dropped=tuple(name for part in found for name in part.dropped) + tuple(gone),
        kept=tuple(name for part in found for name in part.kept),
    )


def _listing(pipeline: PipelineConfig, name: str) -> PipelineConfig:
    """The pipeline as it was while it listed the table; its file may no longer do so."""
    if name in pipeline.source.tables:
        return pipeline
    tables = (*pipeline.source.tables, name)
    source = pipeline.source.model_copy(update={"tables": tables})
    return pipeline.model_copy(update={"source": source})


def _lake_table(catalog: Catalog, identifier: tuple[str, str], purge: bool) -> Retired:
    name = ".".join(identifier)
    if load(catalog, identifier) is None:
        return Retired()
    if not purge:
        return Retired(kept=(name,))
    drop(catalog, identifier)
    return Retired(dropped=(name,))


def _drop_namespace(catalog: Catalog, namespace: str) -> None:
    if not catalog.namespace_exists((namespace,)):
        return
    try:
        catalog.drop_namespace((namespace,))
    except NamespaceNotEmptyError:
        return  # other pipelines' or the user's tables live there too
