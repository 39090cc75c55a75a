"""Callers of a standalone server: bearer tokens with roles, or client certificates.

A token file has one caller per line, ``<role> <name> <token>``, and only its owner may read it.
Tokens are compared by digest in constant time and are never logged (I9).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from starlette.requests import HTTPConnection

from tidegate.api.access import Access, Role, bearer_token
from tidegate.api.problems import Refused
from tidegate.errors import ConfigError
from tidegate.observability.caller import Caller, Surface

TOKEN_VARIABLE: Final = "TIDEGATE_API_TOKEN"
SHORTEST: Final = 16
"""Shorter ones can be guessed."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+-]+\Z")
"""What fits an Authorization header and a WebSocket subprotocol alike."""
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Holder:
    """Whom a token belongs to. Keeps the digest, not the token."""

    name: str
    role: Role
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, name: str, role: Role, token: str) -> Holder:
        if len(token) < SHORTEST or not _TOKEN.match(token):
            raise ConfigError(
                "api.token",
                f"the token of {name} is shorter than {SHORTEST} characters, or has characters"
                " that do not fit a header",
                hint="`openssl rand -hex 24` makes a good one",
            )
        return cls(name, role, _digest(token))


class TokenAuthorizer:
    """Implements ``Authorizer``. With ``certificate_role``, a caller without a token has been
    asked for a certificate by TLS already, and is whoever the certificate's authority vouches
    for."""

    def __init__(self, holders: Iterable[Holder], certificate_role: Role | None = None) -> None:
        self._holders = tuple(holders)
        self._certificate_role = certificate_role

    async def authorize(
        self, connection: HTTPConnection, role: Role, pipeline: str | None
    ) -> Access:
        token = bearer_token(connection)
        if token is None and self._certificate_role is not None:
            name, held = "client certificate", self._certificate_role
        else:
            name, held = self._holder(token)
        if not held.allows(role):
            raise Refused(
                403,
                "api.role",
                f"{name} has the role {held}; this needs {role}",
                hint="ask whoever runs the server for a token with that role",
            )
        return Access(Caller(name, Surface.API))

    def _holder(self, token: str | None) -> tuple[str, Role]:
        if token is None:
            raise Refused(
                401,
                "api.no_token",
                "the request names no caller",
                hint="send `Authorization: Bearer <token>`",
            )
        digest = _digest(token)
        # All of them are compared: the time taken says nothing about which one is near.
        found = [h for h in self._holders if hmac.compare_digest(h.digest, digest)]
        if not found:
            raise Refused(
                401, "api.unknown_token", "nobody has this token", hint="check it, or ask for one"
            )
        return found[0].name, found[0].role


def holders(file: Path | None, home: Path) -> tuple[list[Holder], Path | None]:
    """The callers: of ``TIDEGATE_API_TOKEN`` (an admin), of a file, else of one made up and kept
    in a file of the lake's home. The second is the file where a made-up token is."""
    found = []
    token = os.environ.get(TOKEN_VARIABLE)
    if token:
        found.append(Holder.of("token of the environment", Role.ADMIN, token))
    if file is not None:
        found += read_file(file)
    if found:
        return found, None
    made = home / "api-token"
    if not made.exists():
        home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as writing:
            writing.write(f"admin local {secrets.token_hex(24)}\n")
    return read_file(made), made


def read_file(file: Path) -> list[Holder]:
    """The callers of a token file."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            "api.token_file",
            f"{file} cannot be read: {error.strerror}",
            hint="one caller per line: <role> <name> <token>",
        ) from error
    if mode & _OTHERS:
        raise ConfigError(
            "api.token_file", f"others may read {file}", hint=f"chmod 600 {file}, and new tokens"
        )
    lines = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    found = []
    for words in lines:
        if len(words) != 3 or words[0] not in {Role.READ, Role.EDIT, Role.ADMIN}:
            raise ConfigError(
                "api.token_file",
                f"{file} has a line that is not <role> <name> <token>",
                hint="roles are read, edit and admin; names and tokens have no spaces",
            )
        found.append(Holder.of(words[1], Role(words[0]), words[2]))
    return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
