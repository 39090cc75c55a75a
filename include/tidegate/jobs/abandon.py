"""Giving a sweep up: its gate opens at once, then its branch is forgotten.

The gate comes first: from then on the old process, should it live, cannot publish (I4). A branch
that is left because this process died is found again by the next call, by the table's next sweep,
and by maintenance once it is old.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.jobs.sweep_plan import check_tables
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.catalog import load, open_catalog
from tidegate.lake.gate import Gate, GateState
from tidegate.names import TableId
from tidegate.spark.sweep_state import sweep_branches

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from tidegate.spark.session import SparkSession

PURPOSE = "abandon"
Branches = dict[str, tuple[str, ...]]
"""Branches by source table."""


def abandon_sweep(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId] | None = None,
    actor: str,
    reason: str,
) -> tuple[str, ...]:
    """Give up the sweeps of ``tables``; the tables that had one."""
    catalog = open_catalog(platform, pipeline)
    names = [target.source for target in check_tables(pipeline, tables)]
    with AuditTrail(catalog, pipeline).action(Action.ABANDON, names, reason=reason):
        ended = Gate(catalog, pipeline, platform.gate).abandon(names, actor, reason)
        drop_left_branches(spark, pipeline, platform, tables=ended)
    return ended


def left_branches(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId] | None = None,
) -> Branches:
    """Branches of sweeps that nobody goes on with. Needs no Spark."""
    catalog = open_catalog(platform, pipeline)
    gate = Gate(catalog, pipeline, platform.gate)
    return _left(catalog, gate, check_tables(pipeline, tables))


def drop_left_branches(
    spark: SparkSession,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str | TableId],
) -> Branches:
    """Forget them; their files go with the next expiry."""
    from tidegate.spark import publish

    if not tables:
        return {}
    catalog = open_catalog(platform, pipeline)
    gate = Gate(catalog, pipeline, platform.gate)
    targets = check_tables(pipeline, tables)
    names = [target.source for target in targets]
    with gate.lease(f"{PURPOSE}_{uuid.uuid4().hex[:12]}", names, PURPOSE):  # I4
        left = _left(catalog, gate, targets)
        for target in targets:
            for branch in left.get(target.source, ()):
                publish.drop_branch(spark, target, branch)
    return left


def _left(catalog: Catalog, gate: Gate, targets: Sequence[LakeTarget]) -> Branches:
    states = gate.states([target.source for target in targets])
    found: Branches = {}
    for target in targets:
        table = load(catalog, target.identifier)
        if table is None or states[target.source].state is GateState.SWEEPING:
            continue
        if branches := tuple(sweep_branches(table)):
            found[target.source] = branches
    return found
