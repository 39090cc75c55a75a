"""Work under Airflow: a run of the pipeline's Dag, named by the idempotency key.

Airflow's database is where runs are found again; a Dag run's id is unique per Dag, which decides
between two equal requests.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from airflow.api.common.trigger_dag import trigger_dag
from airflow.configuration import conf
from airflow.exceptions import DagNotFound, DagRunAlreadyExists
from airflow.models.dagrun import DagRun
from airflow.sdk.exceptions import AirflowException
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType

from tidegate.api.problems import Refused
from tidegate.api.processes import RUNS_WAITING
from tidegate.api.runner import Run, RunState, Verb, Work, other_work, run_name
from tidegate.errors import ConfigError
from tidegate.observability.caller import Caller

_KINDS: Final[Mapping[Verb, str]] = {
    Verb.SWEEP: "sweep",
    Verb.VERIFY: "verify",
    Verb.MAINTAIN: "maintenance",
    Verb.REDRIVE: "redrive",
    Verb.ROLLBACK: "rollback",
    Verb.SET_OFFSET: "offsets",
}
_ONE_TABLE: Final = frozenset({Verb.ROLLBACK, Verb.SET_OFFSET})
_STATES: Final[Mapping[str, RunState]] = {
    "queued": RunState.QUEUED,
    "running": RunState.RUNNING,
    "success": RunState.DONE,
    "failed": RunState.FAILED,
}


class DagRunner:
    """Implements ``Runner``; ``tables`` says what ``tables: null`` means for a pipeline."""

    def __init__(self, tables: Callable[[str], tuple[str, ...]]) -> None:
        self._tables = tables

    def start(self, work: Work, caller: Caller, key: str | None) -> Run:
        run_id = run_name(work, caller, key or uuid.uuid4().hex)
        known = self.find(work.pipeline, run_id)
        wanted = parameters(work, self._tables(work.pipeline))
        if known is not None:
            if known.work.verb is not work.verb or known.work.options != wanted:
                raise other_work()
            return known
        _refuse_too_many(work.pipeline)
        self._trigger(f"{work.pipeline}__{_KINDS[work.verb]}", run_id, wanted, caller)
        started = self.find(work.pipeline, run_id)
        assert started is not None  # just triggered
        return started

    def find(self, pipeline: str, run_id: str) -> Run | None:
        dag_ids = [f"{pipeline}__{kind}" for kind in _KINDS.values()]
        with create_session() as session:
            found = DagRun.find(dag_id=dag_ids, run_id=[run_id], session=session)
            return _run(pipeline, found[0]) if found else None

    def recent(self, pipeline: str, limit: int) -> list[Run]:
        dag_ids = [f"{pipeline}__{kind}" for kind in _KINDS.values()]
        with create_session() as session:
            found = DagRun.find(dag_id=dag_ids, session=session)
            own = [run for run in found if run.run_id.startswith(f"{pipeline}-")]
            own.sort(key=lambda run: run.id, reverse=True)
            return [_run(pipeline, run) for run in own[:limit]]

    def _trigger(self, dag_id: str, run_id: str, wanted: dict[str, Any], caller: Caller) -> None:
        try:
            trigger_dag(
                dag_id,
                triggered_by=DagRunTriggeredByType.REST_API,
                triggering_user_name=caller.name,
                run_id=run_id,
                conf=wanted,
            )
        except DagRunAlreadyExists:
            return  # the same request, a moment earlier
        except DagNotFound as error:
            raise Refused(
                503,
                "api.no_dag",
                f"Airflow has no Dag {dag_id} yet",
                hint="it is there once the Dag processor has read the pipeline's file",
            ) from error
        except (AirflowException, ValueError) as error:
            raise ConfigError(
                "api.refused_params",
                f"Airflow refuses the parameters of {dag_id}: {type(error).__name__}",
                hint="`where` is for one table with one key column; tables are the pipeline's own",
            ) from error


def _refuse_too_many(pipeline: str) -> None:
    """Airflow bounds what is at work (``max_active_runs``, pools), not what waits."""
    dag_ids = [f"{pipeline}__{kind}" for kind in _KINDS.values()]
    with create_session() as session:
        waiting = len(DagRun.find(dag_id=dag_ids, state=DagRunState.QUEUED, session=session))
    if waiting >= RUNS_WAITING:
        raise Refused(
            429,
            "api.too_many_runs",
            f"{waiting} runs of {pipeline} wait: no more are taken",
            hint="try again when some have ended; a paused Dag leaves its runs waiting",
        )


def parameters(work: Work, tables: tuple[str, ...]) -> dict[str, Any]:
    """The request as the Dag's form would send it; what is left out is the form's default."""
    options = dict(work.options)
    if "fresh" in options:
        options["resume"] = not options.pop("fresh")
    if work.verb in _ONE_TABLE:
        (options["table"],) = options.pop("tables")
        return {name: value for name, value in options.items() if value is not None}
    return {**options, "tables": options.get("tables") or list(tables)}


def link(dag_id: str, run_id: str) -> str:
    """The Dag run's page, below Airflow's own base path."""
    base = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
    return f"{base}/dags/{quote(dag_id)}/runs/{quote(run_id)}"


def _run(pipeline: str, found: Any) -> Run:
    kind = found.dag_id.rpartition("__")[2]
    verb = next(verb for verb, name in _KINDS.items() if name == kind)
    return Run(
        id=found.run_id,
        work=Work(verb, pipeline, found.conf or {}),
        state=_STATES[str(found.state)],
        started_by=f"{found.triggering_user_name} (api)",
        started_at=found.start_date or found.queued_at,
        ended_at=found.end_date,
        link=link(found.dag_id, found.run_id),
    )
