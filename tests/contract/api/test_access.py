"""Every route needs a role: without a token, with a weak one, with a stranger's."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.api import CLIENT, TOKENS, RecordedRunner, Served, listening
from tidegate.api.access import Role, role_of
from tidegate.api.admission import MOST_BYTES
from tidegate.api.app import create_app
from tidegate.api.hosts import Hosts
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
    app.mount("/mounted", lambda *_: None)
    with listening(app) as url:
        for path in ("/forgotten", "/mounted/", "/mounted/deeper"):
            answer = CLIENT.get(
                f"{url}{path}", headers={"authorization": f"Bearer {TOKENS[Role.ADMIN]}"}
            )
            assert (answer.status_code, answer.json()["code"]) == (403, "api.no_role"), path


@pytest.mark.parametrize("token", [None, STRANGER])
def test_the_socket_is_closed_to_strangers(api: Served, token: str | None) -> None:
    offered = ["tidegate", f"tidegate.token.{token}"] if token else ["tidegate"]
    with pytest.raises(InvalidStatus) as refused, connect(socket_url(api), subprotocols=offered):  # type: ignore[arg-type]
        pass
    assert refused.value.response.status_code == 403


def socket_url(api: Served) -> str:
    return api.url.replace("http", "ws") + "/api/v1/cdc/status"


def begun(url: str, path: str, token: str | None, head: str, body: Iterable[bytes] = ()) -> str:
    """The answer to a request whose body never ends; it is read while more is to come."""
    place = url.removeprefix("http://")
    host, port = place.rsplit(":", 1)
    signed = f"Authorization: Bearer {token}\r\n" if token else ""
    with socket.create_connection((host, int(port)), timeout=10) as sent:
        sent.sendall(
            f"POST {path} HTTP/1.1\r\nHost: {place}\r\n{signed}"
            f"Content-Type: application/json\r\n{head}\r\n\r\n".encode()
        )
        for part in body:
            sent.sendall(part)
        answer = b""
        while b'"code"' not in answer:
            answer += sent.recv(65536)
    return answer.decode()


ENDLESS = "Content-Length: 300000000"


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (None, ("401", "api.no_token")),
        (STRANGER, ("401", "api.unknown_token")),
        (TOKENS[Role.READ], ("403", "api.role")),
        (TOKENS[Role.EDIT], ("413", "api.too_large")),
    ],
)
def test_the_head_of_a_request_decides_before_its_body_is_read(
    api: Served, token: str | None, told: tuple[str, str]
) -> None:
    for head in (ENDLESS, *(["Transfer-Encoding: chunked"] if told[0] != "413" else [])):
        answer = begun(api.url, "/api/v1/cdc/connectors/shop/snapshot", token, head)
        assert answer.split(" ")[1] == told[0] and told[1] in answer, head


def test_a_body_is_counted_while_it_comes(api: Served) -> None:
    part = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    body = (part for _ in range(MOST_BYTES // 0x10000 + 1))  # and no last chunk
    head, path = "Transfer-Encoding: chunked", "/api/v1/cdc/validate"
    assert "api.too_large" in begun(api.url, path, TOKENS[Role.ADMIN], head, body)
    fits = api.post("/validate", {"config": "x" * 200_000})
    assert fits.json()["code"] == "config.invalid"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, None),
        ({"host": "localhost:9000"}, None),
        ({"host": "[::1]"}, None),
        ({"host": "cdc.example.org"}, None),
        ({"origin": "https://cdc.example.org"}, None),
        ({"host": "evil.example"}, "api.unknown_host"),
        ({"host": "127.0.0.1.evil.example"}, "api.unknown_host"),
        ({"host": "[::1"}, "api.unknown_host"),
        ({"origin": "http://evil.example"}, "api.cross_site"),
        ({"origin": "null"}, "api.cross_site"),
        ({"origin": "http://["}, "api.cross_site"),
        ({"origin": "http://localhost:3000"}, "api.cross_site"),  # another server's page
    ],
)
def test_another_name_and_another_sites_page_are_refused(
    loopback: str, headers: dict[str, str], code: str | None
) -> None:
    signed = {"authorization": f"Bearer {TOKENS[Role.ADMIN]}", **headers}
    for method, path in (("GET", "/api/v1/cdc/connectors"), ("POST", "/api/v1/cdc/validate")):
        answer = CLIENT.request(method, f"{loopback}{path}", headers=signed)
        assert (answer.status_code == 403) == (code is not None), answer.text
        assert code in (None, answer.json().get("code"))
    own = CLIENT.get(
        f"{loopback}/api/v1/cdc/connectors", headers={**signed, "host": "evil.example"}
    )
    assert own.status_code == 403
    assert CLIENT.get(f"{loopback}/healthz", headers=headers).status_code == 200


def test_the_socket_is_closed_to_another_sites_page(loopback: str) -> None:
    url = loopback.replace("http", "ws") + "/api/v1/cdc/status"
    offered: Any = ["tidegate", f"tidegate.token.{TOKENS[Role.READ]}"]
    with connect(url, subprotocols=offered, origin=loopback) as socket:  # type: ignore[arg-type]
        assert "shop" in str(socket.recv(timeout=30))
    with (
        pytest.raises(InvalidStatus),
        connect(url, subprotocols=offered, origin="http://evil.example"),  # type: ignore[arg-type]
    ):
        pass


@pytest.fixture(scope="module")
def loopback(api: Served) -> Iterator[str]:
    hosts = Hosts.of("127.0.0.1", loopback=True, allowed=["cdc.example.org"])
    state = api.app.state
    app = create_app(state.pipelines, state.authorizer, state.runner, hosts)
    with listening(app) as url:
        yield url


def test_with_tls_any_name_may_lead_to_a_server_that_was_told_none() -> None:
    assert Hosts.of("10.0.0.7", loopback=False).own is None
    assert Hosts.of("10.0.0.7", loopback=False, allowed=["a.example"]).own == {"10.0.0.7"}


def test_the_document_says_every_operations_role() -> None:
    document = openapi_document()
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["x-tidegate-role"] in set(Role), path
            assert ("security" in operation) == (path not in PUBLIC)
