"""Addresses as they may be shown: without what they are opened with (I9).

:func:`redacted` goes over a text that may hold addresses, :func:`address` over a value that is one.
What names no user, no password and no query is left as it is.
"""

from __future__ import annotations

import re
from typing import Any, Final

HIDDEN: Final = "…"
_IN_TEXT: Final = re.compile(
    # From a word's beginning only: or a long word would be looked at once for each of its letters.
    r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]+://"
    r"(?:[^\s/]*@)?[^\s\"'`<>]*"  # a password may hold quotes
)
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*)(:\d*)?\Z")


def redacted(text: str) -> str:
    """``text`` with every address in it as it may be shown."""
    if "://" not in text:
        return text
    return _IN_TEXT.sub(lambda found: _shown(found[0], in_text=True), text)


def redacted_within(value: Any) -> Any:
    """``value`` with every text in it redacted, in lists and mappings too."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {key: redacted_within(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted_within(one) for one in value]
    return value


def address(value: str) -> str:
    """A value that is an address: anything before an ``@`` is taken for a user's."""
    if "://" in value:
        return _shown(value, in_text=False)
    return f"{HIDDEN}@{value.rpartition('@')[2]}" if "@" in value else value


def origin(value: str) -> str:
    """For addresses whose very path is the key to them (a webhook's): where they lead, no more."""
    scheme, found, rest = address(value).partition("://")
    host, cut, path = rest.partition("/")
    return f"{scheme}://{host}/{HIDDEN}" if found and cut and path else address(value)


def _shown(url: str, *, in_text: bool) -> str:
    scheme, _, rest = url.partition("://")
    cut = min((at for mark in "?#" if (at := rest.find(mark)) >= 0), default=len(rest))
    base, query = rest[:cut], rest[cut:]
    if "@" in base:
        base = f"{HIDDEN}@{base.rpartition('@')[2]}"
    elif "@" in query or not (in_text or _HOST.match(base.partition("/")[0].rpartition("@")[2])):
        # A password with a ? or a # in it ends an address early: nothing here can be trusted.
        return f"{scheme}://{HIDDEN}"
    place, semicolon, parameters = base.partition(";")  # ;password=… of some JDBC drivers
    if parameters and "=" in parameters:
        base = f"{place}{semicolon}{HIDDEN}"
    return f"{scheme}://{base}{_query(query)}"


def _query(query: str) -> str:
    """The names of what is asked for, not the values; nothing of a fragment."""
    asked, _, fragment = query.partition("#")
    names = [
        f"{name}={HIDDEN}" if given else HIDDEN
        for name, given, _ in (one.partition("=") for one in asked[1:].split("&"))
    ]
    shown = f"?{'&'.join(names)}" if asked[1:] else asked
    return shown + (f"#{HIDDEN}" if fragment else "")
