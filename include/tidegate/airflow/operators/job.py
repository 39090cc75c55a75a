"""What the Spark and the capture operator share: run ids, results, asset events."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from airflow.sdk import Asset, AssetAlias, Context

from tidegate.airflow.outcome import tables_in
from tidegate.config.pipeline import PipelineConfig
from tidegate.names import CATALOG, TableId
from tidegate.observability.caller import LONGEST, Caller, Surface

CHANGED_STATES = ("applied", "swept", "opened", "repaired")


def run_name(context: Context) -> str:
    """A short name for branches and journals; the same on every try, so that a sweep resumes."""
    ti, dag_run = context["ti"], context["dag_run"]
    identity = f"{ti.dag_id}/{ti.task_id}/{ti.run_id}/{ti.map_index}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    return f"{dag_run.run_after:%Y%m%dT%H%M%S}_{digest}"


def caller_of(context: Context) -> Caller:
    """Who started the run: the user whom Airflow knows, else what made it (schedule, trigger)."""
    run = context["dag_run"]
    name = run.triggering_user_name or f"{run.run_type.value} run of {run.dag_id}"
    return Caller(name[:LONGEST], Surface.AIRFLOW)


def lake_alias(pipeline_id: str) -> AssetAlias:
    """The alias all of a pipeline's table events come through."""
    return AssetAlias(name=f"tidegate_{pipeline_id}", group="tidegate")


def lake_asset(pipeline: PipelineConfig, table: str) -> Asset:
    """The lake table of a source table, as consumers schedule on it."""
    target = pipeline.target(TableId.parse(table))
    return Asset(
        name=f"{target.namespace}.{target.name}",
        uri=f"x-iceberg://{CATALOG}/{target.namespace}/{target.name}",
        group="tidegate",
    )


def emit_events(
    context: Context, outlets: Sequence[Any], pipeline: PipelineConfig, value: dict[str, Any]
) -> None:
    """One asset event per table that changed, with its counts and position."""
    alias = next((outlet for outlet in outlets if isinstance(outlet, AssetAlias)), None)
    if alias is None:
        return
    changed = set(tables_in(value, *CHANGED_STATES))
    for entry in value["tables"]:
        if entry["table"] in changed:
            extra = {name: fact for name, fact in entry.items() if name != "error"}
            context["outlet_events"][alias].add(lake_asset(pipeline, entry["table"]), extra=extra)
