"""What a server's ``/readyz`` looks at: the lake, and every pipeline that is at work."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.api.pipelines import Known, Pipelines
from tidegate.control.health import (
    DEGRADED,
    FAILED,
    OK,
    check_catalog,
    check_storage,
    pipeline_parts,
    worst,
)
from tidegate.errors import ConfigError, TidegateError


def look(pipelines: Pipelines) -> dict[str, str]:
    """Status by part. No names of pipelines: anyone may ask."""
    parts = [check_catalog(pipelines.platform), check_storage(pipelines.platform)]
    found = {part.name: part.status for part in parts}
    return found | {"pipelines": worst(_pipelines(pipelines))}


def _pipelines(pipelines: Pipelines) -> Iterator[str]:
    try:
        known = pipelines.all()
    except TidegateError:
        yield FAILED
        return
    for one in known:
        yield _one(pipelines, one)


def _one(pipelines: Pipelines, known: Known) -> str:
    """A pipeline that is stopped, or was never deployed, has no work that could fail."""
    if known.pipeline is None:
        return DEGRADED
    try:
        pipeline = pipelines.get(known.name).with_secrets()
    except ConfigError:
        return DEGRADED  # this server has no password of its source: a server that only shows
    except Exception:  # noqa: BLE001 - Airflow's own kinds too: what cannot be asked is failed
        return FAILED
    parts, seen = pipeline_parts(pipeline, pipelines.platform)
    if seen is not None and (not seen.deployed or (seen.running and seen.running.stopped)):
        return OK
    return worst(part.status for part in parts)
