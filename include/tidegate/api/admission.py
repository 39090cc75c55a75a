"""The one way into the application: an ASGI middleware that decides by a request's head alone.

It finds the route that the router will find, asks whether host, origin and caller may, and only
then reads a body, up to :data:`MOST_BYTES`. A route that says no role answers nobody, so that a new
one cannot be forgotten; whatever is not a route of ours is 404 or 405 and never read.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidegate.api.access import Role, authorized, close_code, role_of
from tidegate.api.hosts import Hosts
from tidegate.api.problems import Refused, respond
from tidegate.errors import TidegateError

MOST_BYTES: Final = 1_000_000
"""A pipeline's file of ten thousand tables is smaller; a larger body is a mistake or an attack."""
PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Orchestrators ask them by address, under whatever name; they say nothing of anybody."""
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Admission:
    """Everything passes here; what is learnt of the caller is in ``state.access``."""

    def __init__(self, app: ASGIApp, hosts: Hosts | None = None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            receive = await self._admitted(scope, receive)
        except TidegateError as error:
            await _refuse(scope, receive, send, error)
            return
        await self._app(scope, receive, send)

    async def _admitted(self, scope: Scope, receive: Receive) -> Receive:
        if "\0" in scope["path"]:
            raise Refused(404, "api.http_404", "Not Found", hint="no name holds a zero byte")
        route, found = _route(scope)
        if self._hosts is not None and getattr(route, "path", None) not in PROBES:
            self._hosts.check(HTTPConnection(scope))
        if route is None:
            return receive
        role = role_of(route)
        if role is None:
            raise Refused(403, "api.no_role", "this route says no role", hint="please report it")
        if role is not Role.PUBLIC:
            scope.setdefault("state", {})
            connection = HTTPConnection({**scope, **found})
            connection.state.access = await authorized(connection, role)
        if scope["type"] == "http" and scope["method"] not in _WITHOUT_BODY:
            return await _bounded(scope, receive)
        return receive


def _route(scope: Scope) -> tuple[BaseRoute | None, Scope]:
    """The route that answers, found as the router finds it."""
    for route in scope["app"].routes:
        match, found = route.matches(scope)
        if match is Match.FULL:
            return route, found
    return None, {}


async def _bounded(scope: Scope, receive: Receive) -> Receive:
    """The body, read here and given on; counted while it comes, whatever its head promised."""
    declared = Headers(scope=scope).get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > MOST_BYTES:
        raise _too_large()
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return _first(message, receive)  # the client has left
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            raise _too_large()
        more = message.get("more_body", False)
    whole: Message = {"type": "http.request", "body": b"".join(parts), "more_body": False}
    return _first(whole, receive)


def _first(message: Message, then: Receive) -> Receive:
    """Gives ``message``, and after it what comes."""
    waiting = [message]

    async def receive() -> Message:
        return waiting.pop() if waiting else await then()

    return receive


async def _refuse(scope: Scope, receive: Receive, send: Send, error: TidegateError) -> None:
    if scope["type"] == "http":
        await respond(Request(scope), error)(scope, receive, send)
        return
    # A WebSocket that is closed before it is accepted is answered with 403.
    code = close_code(error) if isinstance(error, Refused) else 1011
    await send({"type": "websocket.close", "code": code, "reason": error.code})


def _too_large() -> Refused:
    return Refused(
        413,
        "api.too_large",
        f"the request's body is larger than {MOST_BYTES:,} bytes",
        hint="send less; a pipeline's file names tables, it does not hold rows",
    )
