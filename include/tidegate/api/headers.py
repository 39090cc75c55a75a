"""Headers of every response, and ETags of what can be asked for again."""

from __future__ import annotations

import hashlib
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'self';"
    " frame-ancestors 'self'; object-src 'none'"
)
"""``frame-ancestors 'self'``: Airflow shows the page in a frame of its own origin."""
_SECURITY: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_JSON: Final = "application/json"


class ResponseHeaders:
    """Security headers on everything; ``ETag`` and 304 on JSON that a GET was answered with."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _Answer(scope, send))


class _Answer:
    """Holds the head of a JSON answer back until its body, which the ETag is made of."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._get = scope["method"] == "GET"
        self._known = Headers(scope=scope).get("if-none-match", "")
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SECURITY.items():
                headers.setdefault(name, value)
            json = headers.get("content-type", "").startswith(_JSON)
            if json:
                headers.setdefault("cache-control", "private, no-cache")
            if self._get and json and message["status"] == 200:
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self._start)
            return
        await self._send(message)

    async def _finish(self, start: Message) -> None:
        tag = f'"{hashlib.sha256(self._body).hexdigest()[:32]}"'
        headers = MutableHeaders(scope=start)
        headers["etag"] = tag
        tags = {one.strip().removeprefix("W/") for one in self._known.split(",")}
        if tag in tags or "*" in tags:
            start["status"] = 304
            for name in ("content-length", "content-type"):
                del headers[name]
            self._body = b""
        await self._send(start)
        await self._send({"type": "http.response.body", "body": self._body})
