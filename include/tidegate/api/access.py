"""Who may do what: every route names a role, and a route that names none is refused.

An :class:`Authorizer` knows the caller; the app knows what each route needs.
:mod:`tidegate.api.admission` asks both before anything of a request's body is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

from fastapi import WebSocketException
from starlette.requests import HTTPConnection

from tidegate.api.problems import Refused
from tidegate.observability.caller import Caller

_ROLE: Final = "__tidegate_role__"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
Endpoint = TypeVar("Endpoint", bound=Callable[..., object])


class Role(StrEnum):
    """What a caller may do; each role includes the ones before it."""

    PUBLIC = "public"  # nothing but whether the process lives
    READ = "read"  # states, counts, positions; never a row's value
    EDIT = "edit"  # start work, hold and open gates, see rows
    ADMIN = "admin"  # create and delete pipelines, move positions, go back in time

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    def allows(self, wanted: Role) -> bool:
        return self.rank >= wanted.rank


def everything(pipeline: str) -> bool:
    """For callers who see every pipeline."""
    return True


@dataclass(frozen=True, slots=True)
class Access:
    """A caller who was let in, and which pipelines they see where several are shown."""

    caller: Caller
    sees: Callable[[str], bool] = everything


class Authorizer(Protocol):
    """Knows callers. Concurrent calls; keeps nothing between them.

    Raises :class:`Refused` with 401 (who are you), or 403 (not this). ``pipeline`` is the pipeline
    the request is about, if it is about one.
    """

    async def authorize(
        self, connection: HTTPConnection, role: Role, pipeline: str | None
    ) -> Access: ...


def needs(role: Role) -> Callable[[Endpoint], Endpoint]:
    """The role that an endpoint needs."""

    def mark(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _ROLE, role)
        return endpoint

    return mark


def role_of(route: object) -> Role | None:
    """The role that a route needs; None where nobody said."""
    role = getattr(getattr(route, "endpoint", None), _ROLE, None)
    return role if isinstance(role, Role) else None


async def authorized(connection: HTTPConnection, role: Role) -> Access:
    """Who is at the other end, if they may; :class:`Refused` otherwise."""
    authorizer: Authorizer = connection.app.state.authorizer
    return await authorizer.authorize(connection, role, connection.path_params.get("name"))


async def still_authorized(connection: HTTPConnection, role: Role) -> Access:
    """Asked again while a WebSocket stays open: it has no response to put a problem into."""
    try:
        return await authorized(connection, role)
    except Refused as refused:
        raise WebSocketException(close_code(refused), refused.code) from refused


def close_code(refused: Refused) -> int:
    """By which a WebSocket's client knows the HTTP status it would have got."""
    return 4000 + refused.status


def access_of(connection: HTTPConnection) -> Access:
    """What the check learnt; for endpoints that show several pipelines."""
    access: Access = connection.state.access
    return access


def caller_of(connection: HTTPConnection) -> Caller:
    """Who sent the request; for endpoints that act."""
    return access_of(connection).caller


def bearer_token(connection: HTTPConnection) -> str | None:
    """The token of the Authorization header, or of a browser's WebSocket, which cannot send one.

    A browser names it as a subprotocol: ``["tidegate", "tidegate.token.<token>"]``.
    """
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    if connection.scope["type"] == "websocket":
        for offered in connection.headers.get("sec-websocket-protocol", "").split(","):
            if offered.strip().startswith(TOKEN_PROTOCOL):
                return offered.strip().removeprefix(TOKEN_PROTOCOL)
    return None


PROTOCOL: Final = "tidegate"
TOKEN_PROTOCOL: Final = "tidegate.token."


def refuse_cross_site(connection: HTTPConnection, own: str | None = None) -> None:
    """For callers known by a cookie only: browsers send cookies along with other sites' requests.

    What changes something, and a WebSocket (which no same-origin policy guards), must come from a
    page of this very server; ``own`` is its public host where a proxy hides it.
    """
    if connection.scope["type"] == "http" and connection.scope["method"] in _SAFE:
        return
    if connection.headers.get("sec-fetch-site") == "same-origin":
        return
    origin = connection.headers.get("origin")
    if origin and urlsplit(origin).netloc in {connection.headers.get("host"), own}:
        return
    raise Refused(
        403,
        "api.cross_site",
        "a cookie alone is not enough for a request from elsewhere",
        hint="send the token in an Authorization header, or call from this server's own page",
    )
