"""The health port of a command that lives until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidegate.cli.invocation import Invocation

if TYPE_CHECKING:
    from tidegate.control.health import Health
    from tidegate.errors import TidegateError

STOPPING = "stopping"
UNKNOWN = "not known"
NOT_READY = "not ready"


@contextmanager
def health_port(
    call: Invocation,
    stop: threading.Event,
    problem: Callable[[], TidegateError | None] = lambda: None,
) -> Iterator[None]:
    """Serve ``/healthz`` and ``/readyz`` of the pipeline within the block, as platform.yaml says.

    ``stop`` is set when the command is told to end: it is not ready from then on, while it finishes
    what it is at. ``problem``: what the command itself knows to be wrong.
    """
    platform = call.platform
    if not platform.health_enabled:
        yield
        return
    from tidegate.control.readiness import Kept
    from tidegate.observability.health_server import serving

    kept = Kept(lambda: _look(call))

    def ready() -> tuple[bool, Mapping[str, Any]]:
        if stop.is_set():
            return False, {"status": STOPPING, "pipeline_id": call.pipeline.pipeline_id}
        return answer(kept.get(), problem(), call.pipeline.pipeline_id)

    with serving(platform.health_host, platform.health_port, ready) as url:
        if url is not None:
            call.output.note(f"health  {url}/readyz")
        yield


def _look(call: Invocation) -> Health:
    """Imported with the first probe: a capture starts without what only health needs."""
    from tidegate.control.health import health

    return health(call.platform, call.pipeline)


def answer(
    seen: Health | None, problem: TidegateError | None, pipeline_id: str
) -> tuple[bool, Mapping[str, Any]]:
    """The specification's document. Why a part failed is for those who may read the logs."""
    from tidegate.control.health import FAILED, OK
    from tidegate.jobs.result import plain

    if seen is None:
        return False, {"status": UNKNOWN, "pipeline_id": pipeline_id}
    parts = {part.name: part.status for part in seen.components}
    parts["rounds"] = OK if problem is None else FAILED
    ready = seen.ok and problem is None
    told = {
        "status": seen.status if ready else NOT_READY,
        "pipeline_id": pipeline_id,
        "source": plain(seen.source),
        "sinks": plain(seen.sinks),
        "consumer_lag": plain(seen.consumer_lag),
        "components": parts,
    }
    return ready, told
