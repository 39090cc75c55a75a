"""The names a server answers to, and the pages that may call it.

Another site's page can make a browser call a loopback server, even read its answers once the
site's name resolves to 127.0.0.1 (DNS rebinding); the browser then tells the site's name in Host
and Origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tidegate.api.problems import Refused

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Hosts:
    """``allowed``: names that whoever runs the server gave, a proxy's for instance. ``own``: the
    server's; None where any name may lead here (with TLS, whose certificate names the server)."""

    own: frozenset[str] | None
    allowed: frozenset[str]

    @classmethod
    def of(cls, address: str, *, loopback: bool, allowed: Iterable[str] = ()) -> Hosts:
        """For a server that listens at ``address``."""
        given = frozenset(name.strip().strip("[]").lower() for name in allowed if name.strip())
        if loopback:
            return cls(LOOPBACK_NAMES | {address.lower()}, given)
        return cls(frozenset({address.lower()}) if given else None, given)

    def check(self, connection: HTTPConnection) -> None:
        """Refuse another name, and a page of elsewhere."""
        named = connection.headers.getlist("host")
        host = _name(f"//{named[0]}") if len(named) == 1 else None
        if self.own is not None and host not in self.own | self.allowed:
            raise Refused(
                403,
                "api.unknown_host",
                "this server does not answer to the name in the Host header",
                hint="call it by the address it listens at, or start it with --allowed-host NAME",
            )
        origin = connection.headers.get("origin")
        if origin is None:
            return
        _, _, place = origin.partition("://")
        if not place or (_name(origin) not in self.allowed and [place.lower()] != _lower(named)):
            raise Refused(
                403,
                "api.cross_site",
                "a page of another site may not call this server",
                hint="call from the server's own page; behind a proxy start the server with"
                " --allowed-host NAME, the proxy's public name",
            )


def _lower(names: list[str]) -> list[str]:
    return [name.lower() for name in names]


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
