"""Who started a run, as Airflow tells it, reaches the job's process by its environment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.utils.types import DagRunType

from tidegate.airflow.handover import job_environment
from tidegate.airflow.operators.job import caller_of
from tidegate.observability.caller import Caller, Surface, current


def context(user: str | None, kind: DagRunType) -> Any:
    run = SimpleNamespace(triggering_user_name=user, run_type=kind, dag_id="shop__sweep")
    return {"dag_run": run}


@pytest.mark.parametrize(
    ("user", "kind", "name"),
    [
        ("ann", DagRunType.MANUAL, "ann"),
        (None, DagRunType.MANUAL, "manual run of shop__sweep"),
        (None, DagRunType.SCHEDULED, "scheduled run of shop__sweep"),
        ("x" * 500, DagRunType.MANUAL, "x" * 200),
    ],
)
def test_the_user_or_what_made_the_run(
    user: str | None, kind: DagRunType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = caller_of(context(user, kind))
    assert found == Caller(name, Surface.AIRFLOW)
    for variable, value in job_environment(found).items():
        monkeypatch.setenv(variable, value)
    assert current() == found, "the job knows it"
