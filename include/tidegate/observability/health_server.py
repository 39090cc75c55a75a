"""``/healthz`` and ``/readyz`` of a process that lives for long, on a port of their own.

A few threads of the standard library: no web framework is imported beside a capture. Whoever asks
needs no token, so answers hold states, counts and names of tables: no address, no value (I9).
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final

from tidegate.observability import log

_LOG = log.get(__name__)
REQUEST_SECONDS: Final = 5.0
"""A caller that says nothing for this long is left."""
MOST_CALLERS: Final = 16
"""Probes are few; more at once are turned away, or callers could fill the process with threads."""

Ready = Callable[[], tuple[bool, Mapping[str, Any]]]
"""Whether work can be done, and what is told of it. Called from many threads; must answer soon."""


@contextmanager
def serving(host: str, port: int, ready: Ready) -> Iterator[str | None]:
    """Serve within the block; gives the server's address, or None where the port cannot be had.

    A port in use is warned of and stops nothing: the work matters more than its probes.
    """
    try:
        server = _Server(host, port, ready)
    except OSError as error:
        log.event(
            _LOG,
            f"health is not served: {host} port {port}: {error.strerror or error}",
            level=logging.WARNING,
            hint="set health_port (0: any free one) or health_host in platform.yaml, or"
            " health_enabled: false; the work goes on",
        )
        yield None
        return
    thread = threading.Thread(target=server.serve_forever, name="tidegate-health", daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a caller that hangs does not keep the process

    def __init__(self, host: str, port: int, ready: Ready) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, _, _, _, address = found[0]
        self.ready = ready
        self._callers = threading.BoundedSemaphore(MOST_CALLERS)
        super().__init__(address[:2], _Handler)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"http://{shown}:{port}"

    def server_bind(self) -> None:
        """Without the question to a name server that the standard library's HTTP server asks."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._callers.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._callers.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that goes away in the middle is its own affair."""
        _LOG.debug("a health probe was not answered", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/healthz":
            self._answer(200, {"status": "ok"})
        elif path == "/readyz":
            ready, told = self.server.ready()
            self._answer(200 if ready else 503, told)
        else:
            self._answer(404, {"status": "not found"})

    do_HEAD = do_GET

    def _answer(self, status: int, told: Mapping[str, Any]) -> None:
        body = json.dumps(told).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "tidegate"

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every few seconds: they are not logged."""
