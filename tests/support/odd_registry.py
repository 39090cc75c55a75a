"""A server that answers like a schema registry on a bad day."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class OddRegistry:
    """``status`` and ``body`` are what it answers; ``drip`` sends it byte by byte, for ever."""

    status: int = 200
    body: bytes = b"{}"
    drip: float | None = None
    silent: bool = False
    url: str = ""
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def says(self, status: int, body: Any) -> None:
        self.status, self.body = status, json.dumps(body).encode()


@contextmanager
def odd_registry(tls: ssl.SSLContext | None = None) -> Iterator[OddRegistry]:
    odd = OddRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            odd.asked.append(self.path)
            odd.headers.append(dict(self.headers))
            self.rfile.read(int(self.headers["Content-Length"]))
            if odd.silent:
                odd.over.wait(30)
                return
            try:
                self._answer()
            except OSError:
                return  # the client has had enough, which is what is tested

        def _answer(self) -> None:
            if odd.drip is not None:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while not odd.over.is_set():
                    self.wfile.write(b"X-Drip: 1\r\n")
                    time.sleep(odd.drip)  # what is slow here is the server
                return
            self.send_response(odd.status)
            self.send_header("Content-Length", str(len(odd.body)))
            self.end_headers()
            self.wfile.write(odd.body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        odd.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield odd
        finally:
            odd.over.set()
            server.shutdown()
            thread.join()
