"""Jobs of which the audit trail tells."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.lake.audit_trail import Action, AuditTrail, Noting


def audited(
    catalog: Catalog,
    pipeline: PipelineConfig,
    action: Action,
    targets: Sequence[LakeTarget],
    run: str,
    *,
    when: bool,
) -> AbstractContextManager[Noting | None]:
    """The entry of a job that changes ``targets``; none unless ``when``: looking is not told."""
    if not when:
        return nullcontext()
    names = [target.source for target in targets]
    return AuditTrail(catalog, pipeline).action(action, names, run=run)
