"""A server on a real SQLite catalog, with a pipeline whose lake PyIceberg wrote.

Two tables: ``public.orders`` was swept, applied to and compacted once, has a dead letter and a
second schema; ``public.customers`` waits for its first sweep. No JVM, no source.
"""

from __future__ import annotations

import atexit
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import uvicorn
from fastapi import FastAPI
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from tests.support.changes import EPOCH, Clock, ModelTable, batch, number, schema, text
from tidegate.api.access import Role
from tidegate.api.app import create_app
from tidegate.api.pipelines import Pipelines
from tidegate.api.routes.subject import BASE
from tidegate.api.runner import Run, Runner, RunState, Work, other_work, run_name
from tidegate.api.tokens import Holder, TokenAuthorizer
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control import gates
from tidegate.envelope.dead_letter import Parked
from tidegate.envelope.position import Position, boundary
from tidegate.lake import commits
from tidegate.lake.catalog import ensure_namespace, open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.dead_letters import DeadLetters
from tidegate.lake.reports import Reports
from tidegate.lake.schema_history import SchemaHistory
from tidegate.names import LETTERS_PROPERTY, POSITION_PROPERTY, RUN_PROPERTY, STEP_PROPERTY

TOKENS = {role: f"token-of-{role}-0123456789" for role in (Role.READ, Role.EDIT, Role.ADMIN)}
CLIENT = httpx.Client(timeout=30, trust_env=False, verify=False)  # loopback only, without TLS
atexit.register(CLIENT.close)
SECRET = "planted-s3cret-never-shown"
PIPELINE = f"""\
pipeline_id: shop
owner: data-team
tags: [demo]
source:
  database: shop
  host: 127.0.0.1
  port: 1
  username: reader
  password: {SECRET}
  tables: [public.customers, public.orders]
"""
ORDERS = schema("public.orders", number("id", key=1), text("status"))
ORDERS_LATER = schema("public.orders", number("id", key=1), text("status"), text("note"))
LAKE_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "status", StringType(), required=False),
    identifier_field_ids=[1],
)


class RecordedRunner:
    """Implements ``Runner`` without starting anything: runs are kept and stay queued."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}

    def start(self, work: Work, caller: Any, key: str | None) -> Run:
        run_id = run_name(work, caller, key or f"run-{len(self.runs)}")
        known = self.runs.get(run_id)
        if known is not None:
            if known.work.digest != work.digest:
                raise other_work()
            return known
        self.runs[run_id] = Run(run_id, work, RunState.QUEUED, str(caller), None)
        return self.runs[run_id]

    def find(self, pipeline: str, run_id: str) -> Run | None:
        run = self.runs.get(run_id)
        return run if run is not None and run.work.pipeline == pipeline else None

    def recent(self, pipeline: str, limit: int) -> list[Run]:
        own = [run for run in self.runs.values() if run.work.pipeline == pipeline]
        return own[::-1][:limit]


@dataclass
class Served:
    """An application and what it serves."""

    app: FastAPI
    url: str
    pipelines: Pipelines
    pipeline: PipelineConfig
    platform: PlatformConfig
    catalog: Catalog
    letter: str
    """The event id of the dead letter."""

    def call(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> httpx.Response:
        """Any request; ``token`` None: without one."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        headers |= options.pop("headers", {})
        return CLIENT.request(method, f"{self.url}{path}", headers=headers, **options)

    def get(self, path: str, role: Role = Role.ADMIN, **options: Any) -> httpx.Response:
        return self.call("GET", f"{BASE}{path}", TOKENS[role], **options)

    def post(self, path: str, body: Any, role: Role = Role.ADMIN, **options: Any) -> httpx.Response:
        return self.call("POST", f"{BASE}{path}", TOKENS[role], json=body, **options)


def served(folder: Path, runner: Runner | None = None) -> Iterator[Served]:
    """The application below ``folder``, its lake filled."""
    (folder / "pipelines").mkdir()
    file = folder / "pipelines" / "shop.yaml"
    file.write_text(PIPELINE, encoding="utf-8")
    platform_file = folder / "platform.yaml"
    platform_file.write_text("lake: {home: home}\n", encoding="utf-8")
    platform, pipeline = load_platform(platform_file), load_pipeline(file)
    catalog = open_catalog(platform, pipeline)
    letter = fill(catalog, pipeline, platform)
    holders = [Holder.of(f"{role}er", role, token) for role, token in TOKENS.items()]
    pipelines = Pipelines(folder / "pipelines", platform, platform_file)
    app = create_app(pipelines, TokenAuthorizer(holders), runner or RecordedRunner())
    with listening(app) as url:
        yield Served(app, url, pipelines, pipeline, platform, catalog, letter)
    catalog.close()


@contextmanager
def listening(app: Any, **options: Any) -> Iterator[str]:
    """A real server on a free port; its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="warning", ws="websockets-sansio", **options)
        server = uvicorn.Server(config)
        ready = threading.Event()
        began = server.startup

        async def startup(sockets: Any = None) -> None:
            await began(sockets)
            ready.set()

        server.startup = startup  # type: ignore[method-assign]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        assert ready.wait(30), "the server did not start"
        try:
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


def fill(catalog: Catalog, pipeline: PipelineConfig, platform: PlatformConfig) -> str:
    """Write a lake as a first sweep and one apply leave it; the dead letter's event id."""
    clock = Clock()
    orders = ModelTable(ORDERS, clock, full=True)
    for key in range(1, 4):
        orders.insert(str(key), "new")
    orders.commit()
    cut = clock.position
    log, history = ChangeLog(catalog, pipeline), SchemaHistory(catalog, pipeline)
    log.create(boundary(EPOCH, 0x1000))
    history.record(ORDERS, boundary(EPOCH, 0x1000))
    ensure_namespace(catalog, "shop")
    table = catalog.create_table(
        ("shop", "orders"), LAKE_SCHEMA, properties={"format-version": "2"}
    )
    swept = _commit(catalog, table.name(), [("1", "new"), ("2", "new"), ("3", "new")], cut, "sweep")
    orders.update(orders.find("2"), status="paid")
    orders.commit()
    orders.evolve(ORDERS_LATER)
    history.record(ORDERS_LATER, clock.position)
    orders.insert("4", "new", "fragile")
    orders.commit()
    failing = orders.events[-1]
    letters = DeadLetters(catalog, pipeline)
    letters.route("public.orders", "batch-1", "apply_2", [_parked(failing)])
    applied = _commit(catalog, table.name(), [("2", "paid")], clock.position, "apply", "batch-1")
    writer = log.writer()
    writer.write(batch(orders.events))
    writer.commit(clock.position)
    reports = Reports(catalog, pipeline)
    entry = {"table": "public.orders", "seconds": 2.0}
    reports.add(
        "sweep",
        "sweep_1",
        {"tables": [{**entry, "status": "swept", "rows": 3, "snapshot_id": swept}]},
    )
    told = {"status": "applied", "updated": 1, "parked": 1, "snapshot_id": applied}
    reports.add("apply", "apply_2", {"tables": [{**entry, **told}], "seconds": 2.0})
    reports.add("capture", "capture_1", {"rows": 5, "seconds": 0.5, "bytes": 100, "commits": 1})
    reports.add("maintain", "maintain_1", {"done": {"public.orders": ["compact"]}})
    gates.hold(pipeline, platform, ["public.orders"], reason="look first", actor="ann (cli)")
    return str(failing["event_id"])


def _parked(event: dict[str, Any]) -> Parked:
    from tidegate.envelope.dead_letter import Role as LetterRole

    key = tuple(event["key"])
    at = Position(EPOCH, event["position"])
    message = "column note does not fit"
    return Parked(at, key, key, LetterRole.FAILED, "apply.cast_failed", message, event)


def _commit(
    catalog: Catalog,
    name: Any,
    rows: list[tuple[str, str]],
    at: Position,
    step: str,
    letters: str | None = None,
) -> int:
    table = catalog.load_table(name)
    data = pa.table(
        {"id": pa.array([int(key) for key, _ in rows]), "status": [status for _, status in rows]},
        schema=table.schema().as_arrow(),
    )
    stamp = {POSITION_PROPERTY: str(at), STEP_PROPERTY: step, RUN_PROPERTY: f"{step}_1"}
    stamp |= {LETTERS_PROPERTY: letters} if letters else {}
    files = commits.write_files(table, data)
    snapshot = commits.append_files(table, files, stamp, commits.head_id(table))
    assert snapshot is not None
    return snapshot
