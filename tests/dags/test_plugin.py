"""Tidegate's HTTP API inside Airflow's own API server: its login, its roles, its Dags."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
from fastapi.routing import APIRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.contract.api.test_access import ENDLESS, PUBLIC, begun, filled, routes
from tests.dags.conftest import PROJECT
from tests.support.api import CLIENT, listening
from tests.support.shop import ORDERS, Shop
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.envelope.position import Position
from tidegate.lake.catalog import open_catalog

# Airflow's server, in this process, warns of its own dependencies.
pytestmark = pytest.mark.filterwarnings("ignore")
BASE = "/tidegate/api/v1/cdc"
WEAKER = {"edit": "viewer", "admin": "user"}


@dataclass
class Server:
    """Airflow's API server, and tokens of users with its simple roles."""

    url: str
    tokens: dict[str, str]

    def call(self, method: str, path: str, role: str | None = None, **options: Any) -> Any:
        headers = {"authorization": f"Bearer {self.tokens[role]}"} if role else {}
        headers |= options.pop("headers", {})
        return CLIENT.request(method, f"{self.url}{path}", headers=headers, **options)


@pytest.fixture(scope="module")
def server(airflow_db: Path, plugin_folder: Path) -> Iterator[Server]:
    folder = plugin_folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEGATE_PIPELINES_DIR", str(folder / "pipelines"))
        patch.setenv("TIDEGATE_PLATFORM_FILE", str(folder / "platform.yaml"))
        serialize()
        yield from served()


def serialize() -> None:
    """Make the Dags known, as the Dag processor does."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    for bundle in manager.get_all_dag_bundles():
        bundle.initialize()
        bag = BundleDagBag(bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)
        assert not bag.import_errors, bag.import_errors
        sync_bag_to_db(bag, bundle.name, None)


def served() -> Iterator[Server]:
    from airflow.api_fastapi.app import create_app, get_auth_manager, purge_cached_app
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    from tidegate.airflow.api import airflow_app

    airflow_app.cache_clear()
    app = create_app(apps="core")
    manager = get_auth_manager()
    tokens = {
        role: manager.generate_jwt(SimpleAuthManagerUser(username=f"{role}-ann", role=role))
        for role in ("viewer", "user", "op")
    }
    claims = jwt.decode(tokens["op"], options={"verify_signature": False})
    tokens["foreign"] = jwt.encode(claims, "another-server-another-server-another", "HS512")
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    secret = "only-for-tests-only-for-tests-only-for-tests"
    tokens["old"] = jwt.encode({**claims, "exp": past}, secret, "HS512")
    with listening(app) as url:
        yield Server(url, tokens)
    purge_cached_app()


def test_every_route_asks_airflow_who_is_there(server: Server) -> None:
    from tidegate.airflow.api import airflow_app

    found = [r for r in routes(airflow_app()) if isinstance(r, APIRoute) and r.path not in PUBLIC]
    assert len(found) > 35
    for route in found:
        for method in route.methods:
            path = f"/tidegate{filled(route.path)}"
            assert server.call(method, path, json={}).status_code == 401, path
            for role in ("foreign", "old"):
                assert server.call(method, path, role, json={}).status_code == 401, path


def test_every_route_asks_for_the_role_it_needs(server: Server) -> None:
    from tidegate.airflow.api import airflow_app
    from tidegate.api.access import role_of

    checked = 0
    for route in routes(airflow_app()):
        weaker = WEAKER.get(str(role_of(route)))
        for method in route.methods if isinstance(route, APIRoute) and weaker else ():
            answer = server.call(method, f"/tidegate{filled(route.path)}", weaker, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "api.role"), route.path
            checked += 1
    assert checked > 12


def test_the_head_of_a_request_decides_below_airflow_too(server: Server) -> None:
    path = f"{BASE}/connectors/shop/snapshot"
    for role, told in ((None, "401"), ("foreign", "401"), ("viewer", "403"), ("user", "413")):
        token = server.tokens[role] if role else None
        assert begun(server.url, path, token, ENDLESS).split(" ")[1] == told, role


def test_viewers_read_and_strangers_only_learn_that_it_lives(server: Server) -> None:
    listed = server.call("GET", f"{BASE}/connectors", "viewer")
    assert [item["name"] for item in listed.json()["items"]] == ["shop"]
    assert server.call("GET", "/tidegate/healthz").status_code == 200
    for page in ("openapi.json", "docs", "redoc"):
        assert server.call("GET", f"/tidegate/{page}", "op").status_code == 404


def test_a_cookie_counts_for_airflows_own_pages_only(server: Server) -> None:
    cookie = {"cookie": f"_token={server.tokens['user']}"}
    path = f"{BASE}/connectors/shop/stop"
    assert server.call("GET", f"{BASE}/connectors", headers=cookie).status_code == 200
    elsewhere = {**cookie, "origin": "https://evil.example"}
    for headers in (cookie, elsewhere, {**elsewhere, "sec-fetch-site": "cross-site"}):
        answer = server.call("POST", path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "api.cross_site")
    own = {**cookie, "origin": server.url}
    answer = server.call("POST", path, headers=own, json={"reason": "look"})
    assert (answer.status_code, answer.json()["actor"]) == (200, "user-ann")
    server.call("POST", f"{BASE}/connectors/shop/start", "user")


def test_the_socket_asks_airflow_too(server: Server) -> None:
    url = server.url.replace("http", "ws") + f"{BASE}/status"
    cookie = {"Cookie": f"_token={server.tokens['viewer']}"}
    for headers, origin in (({}, None), (cookie, None), (cookie, "https://evil.example")):
        with pytest.raises(InvalidStatus) as refused:
            connect(url, additional_headers=headers, origin=origin)  # type: ignore[arg-type]
        assert refused.value.response.status_code == 403
    with connect(url, additional_headers=cookie, origin=server.url) as socket:  # type: ignore[arg-type]
        assert "shop" in json.loads(socket.recv(timeout=30))["pipelines"]


def test_work_becomes_a_run_of_the_pipelines_dag_once(server: Server) -> None:
    body = {"tables": ["public.orders"], "where": "id >= 1", "dry_run": True}
    key = {"idempotency-key": "one-and-the-same"}
    path = f"{BASE}/connectors/shop/snapshot"
    first = server.call("POST", path, "user", json=body, headers=key)
    assert first.status_code == 202, first.text
    run = first.json()
    assert (run["state"], run["started_by"]) == ("queued", "user-ann (api)")
    assert run["link"].endswith(f"/dags/shop__sweep/runs/{run['id']}")
    assert server.call("POST", path, "user", json=body, headers=key).json()["id"] == run["id"]
    theirs = server.call("POST", path, "op", json=body, headers=key).json()
    assert (theirs["started_by"], theirs["id"] != run["id"]) == ("op-ann (api)", True)
    other = server.call("POST", path, "user", json={"dry_run": True}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "api.idempotency_key")
    found = server.call("GET", f"{BASE}/connectors/shop/runs/{run['id']}", "viewer").json()
    assert found["options"]["where"] == "id >= 1" and found["options"]["resume"] is True
    started = {run["id"]}
    for verb, dag in (("verify", "verify"), ("maintain", "maintenance")):
        answer = server.call("POST", f"{BASE}/connectors/shop/{verb}", "user", json={}).json()
        assert f"/dags/shop__{dag}/runs/" in answer["link"]
        started.add(answer["id"])
    listed = server.call("GET", f"{BASE}/connectors/shop/runs", "viewer").json()
    assert len(started) == 3
    assert started <= {one["id"] for one in listed}, "beside what others started"


def test_more_runs_than_anyone_waits_for_are_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.airflow.runs.RUNS_WAITING", 1)  # nothing here takes runs up
    path = f"{BASE}/connectors/shop/maintain"
    answers = [server.call("POST", path, "user", json={"force": True}) for _ in range(2)]
    assert answers[-1].status_code == 429
    assert (
        answers[-1].json()["code"] == "api.too_many_runs" and "retry-after" in answers[-1].headers
    )


def test_a_position_is_looked_at_by_readers_and_set_by_admins_in_a_dag_run(server: Server) -> None:
    swept, stands = _standing()
    path = f"{BASE}/connectors/shop/offsets"
    body = {"table": ORDERS, "position": str(swept)}
    looked = server.call("POST", f"{path}/plan", "viewer", json=body)
    assert looked.status_code == 200, looked.text
    plan = looked.json()
    assert (plan["direction"], plan["changes"], plan["from_position"]) == ("replay", 3, str(stands))
    refused = server.call("PUT", path, "user", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "api.role")
    late = server.call("PUT", path, "op", json={**body, "expect": str(swept)})
    assert (late.status_code, late.json()["code"]) == (409, "offsets.moved")
    sent = {**body, "expect": plan["from_position"], "reason": "a lost batch"}
    run = server.call("PUT", path, "op", json=sent)
    assert run.status_code == 202, run.text
    assert f"/dags/shop__offsets/runs/{run.json()['id']}" in run.json()["link"]
    found = server.call("GET", f"{BASE}/connectors/shop/runs/{run.json()['id']}", "viewer").json()
    assert (found["verb"], found["started_by"]) == ("set offset", "op-ann (api)")
    assert found["options"] == {**sent, "skip": False}


def _standing() -> list[Position]:
    """Orders stands three changes after its sweep."""
    platform = load_platform(os.environ["TIDEGATE_PLATFORM_FILE"])
    pipeline = load_pipeline(Path(os.environ["TIDEGATE_PIPELINES_DIR"]) / "shop.yaml")
    shop = Shop(open_catalog(platform, pipeline), pipeline)
    cuts = [shop.capture()]
    for number in range(3):
        shop.orders.insert(str(number), "x", None)
    shop.orders.commit()
    cuts.append(shop.capture())
    shop.stands(ORDERS, cuts[:1], "sweep")
    shop.stands(ORDERS, cuts[1:])
    shop.catalog.close()
    return cuts


def test_loading_the_plugin_loads_no_lake() -> None:
    """Every task's process loads plugins."""
    code = (
        "import sys; sys.path[:0] = ['plugins']; import tidegate_plugin;"
        "print([m for m in ('pyiceberg', 'pyarrow', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"
