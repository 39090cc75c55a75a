"""Every route needs a role: without a token, with a weak one, with a stranger's."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.api import TOKENS, RecordedRunner, Served, listening
from tidegate.api.access import Role, role_of
from tidegate.api.app import create_app
from tidegate.api.reference import openapi_document
from tidegate.api.tokens import TokenAuthorizer

PUBLIC = {"/", "/healthz", "/readyz", "/static/{path:path}"}
STRANGER = "a-token-that-nobody-has-0000"
WEAKER = {Role.EDIT: Role.READ, Role.ADMIN: Role.EDIT}


def routes(app: FastAPI) -> list[Any]:
    """Everything a request can reach; whatever FastAPI wraps included routers in is opened."""
    found: list[Any] = []
    waiting = list(app.routes)
    while waiting:
        route = waiting.pop()
        inner = getattr(route, "routes", None)
        if inner and not hasattr(route, "endpoint"):
            waiting += inner
        else:
            found.append(route)
    return found


def filled(path: str) -> str:
    for name, value in {
        "name": "shop",
        "table": "public.orders",
        "key": "1",
        "event_id:uuid": "00000000-0000-0000-0000-000000000000",
        "run_id": "x",
    }.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def test_every_route_says_its_role(api: Served) -> None:
    found = routes(api.app)
    assert len(found) > 35
    for route in found:
        assert isinstance(route, (APIRoute, APIWebSocketRoute)), f"{route} is not checked"
        role = role_of(route)
        assert role is not None, f"{route.path} says no role"
        assert (role is Role.PUBLIC) == (route.path in PUBLIC), route.path


def test_no_route_answers_without_a_token_or_to_a_stranger(api: Served) -> None:
    for route in routes(api.app):
        if not isinstance(route, APIRoute) or route.path in PUBLIC:
            continue
        for method in route.methods:
            for token, code in ((None, "api.no_token"), (STRANGER, "api.unknown_token")):
                answer = api.call(method, filled(route.path), token, json={})
                assert (answer.status_code, answer.json()["code"]) == (401, code), route.path
                assert answer.headers["www-authenticate"].startswith("Bearer")


def test_no_route_answers_to_too_weak_a_token(api: Served) -> None:
    checked = 0
    for route in routes(api.app):
        role = role_of(route)
        if not isinstance(route, APIRoute) or role not in WEAKER:
            continue
        for method in route.methods:
            answer = api.call(method, filled(route.path), TOKENS[WEAKER[role]], json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "api.role"), route.path
            checked += 1
    assert checked > 12


def test_a_route_that_says_no_role_answers_nobody(api: Served) -> None:
    app = create_app(api.pipelines, TokenAuthorizer([]), RecordedRunner())
    app.get("/forgotten")(lambda: "everything")
    with listening(app) as url:
        answer = Served.call(
            type("Elsewhere", (), {"url": url})(),  # type: ignore[arg-type]
            "GET",
            "/forgotten",
            TOKENS[Role.ADMIN],
        )
    assert (answer.status_code, answer.json()["code"]) == (403, "api.no_role")


@pytest.mark.parametrize("token", [None, STRANGER])
def test_the_socket_is_closed_to_strangers(api: Served, token: str | None) -> None:
    offered = ["tidegate", f"tidegate.token.{token}"] if token else ["tidegate"]
    with pytest.raises(InvalidStatus) as refused, connect(socket_url(api), subprotocols=offered):  # type: ignore[arg-type]
        pass
    assert refused.value.response.status_code == 403


def socket_url(api: Served) -> str:
    return api.url.replace("http", "ws") + "/api/v1/cdc/status"


def test_the_document_says_every_operations_role() -> None:
    document = openapi_document()
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["x-tidegate-role"] in set(Role), path
            assert ("security" in operation) == (path not in PUBLIC)
