"""Work started over HTTP: the command line's verb with Spark, asked for by id until it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api import Served, served
from tidegate.api.processes import ProcessRunner

pytestmark = pytest.mark.spark
SECONDS = 240


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Served]:
    for found in served(tmp_path):
        found.app.state.runner = ProcessRunner(found.pipelines, tmp_path / "runs")
        yield found


def test_upkeep_is_planned_by_a_run_that_is_asked_for(api: Served) -> None:
    key = {"idempotency-key": "plan-once"}
    first = api.post("/connectors/shop/maintain", {"dry_run": True}, headers=key).json()
    again = api.post("/connectors/shop/maintain", {"dry_run": True}, headers=key).json()
    assert first["id"] == again["id"] and first["state"] in ("queued", "running")
    run, until = first, time.monotonic() + SECONDS
    while run["state"] in ("queued", "running") and time.monotonic() < until:
        time.sleep(0.5)  # a poll with a deadline, as a client does
        run = api.get(f"/connectors/shop/runs/{first['id']}").json()
    assert run["state"] == "done", run
    tables = {entry["table"]: entry["status"] for entry in run["result"]["tables"]}
    assert tables["public.customers"] == "skipped"
    assert tables["public.orders"] in ("nothing due", "planned")
    assert run["started_by"] == "adminer (api)" and run["ended_at"]
