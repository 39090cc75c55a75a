"""The page in a real Chromium, served by ``tidegate serve`` in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.page.prepared_lake import PreparedLake, prepared
from tests.support.cli import ENTRY, INCLUDE

TOKEN = "page-tests-have-this-token"
READER = "read-only-token-of-ann"
START_SECONDS = 60
NETWORK = ("Failed to load resource", "WebSocket connection to")
DESKTOP, PHONE = (1360, 900), (390, 844)


@dataclass
class Served:
    """A running ``tidegate serve``."""

    folder: Path
    url: str
    token: str = TOKEN


@contextmanager
def serving(
    folder: Path,
    port: int | None = None,
    options: tuple[str, ...] = (),
    command: Sequence[str] | None = None,
) -> Iterator[Served]:
    """``tidegate serve`` on the pipelines of ``folder``, until the block ends; ``command``: with
    these words, and a port of its own."""
    port = port or free_port()
    environment = os.environ | {
        "PYTHONPATH": str(INCLUDE),
        "TIDEGATE_PLATFORM_FILE": str(folder / "platform.yaml"),
        "TIDEGATE_API_TOKEN": TOKEN,
    }
    words = command or ("serve", "--pipelines", str(folder / "pipelines"), *options)
    process_words = [sys.executable, "-c", ENTRY, *words, "--port", str(port)]
    with (folder / "serve.log").open("ab") as log:
        process = subprocess.Popen(
            process_words, cwd=folder, env=environment, stdout=log, stderr=log
        )
        try:
            url = f"http://127.0.0.1:{port}/"
            _until_it_answers(url, process, folder / "serve.log")
            yield Served(folder, url)
        finally:
            process.terminate()
            process.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)  # it says nothing by itself: polled with a deadline
    pytest.fail(f"no answer: {log.read_text(encoding='utf-8')}")


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PreparedLake, Served]]:
    """The prepared lake and its server, for tests that only look."""
    lake = prepared(tmp_path_factory.mktemp("shown"))
    tokens = lake.folder / "tokens"
    tokens.write_text(f"read ann {READER}\n", encoding="utf-8")
    tokens.chmod(0o600)
    with serving(lake.folder, options=("--token-file", str(tokens))) as served:
        yield lake, served


@pytest.fixture(scope="module")
def acted_on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PreparedLake, Served]]:
    """A prepared lake for tests that change it, each another table."""
    lake = prepared(tmp_path_factory.mktemp("acted") / "lake")
    with serving(lake.folder) as served:
        yield lake, served


@dataclass
class Visitor:
    """One browser window, and what went wrong in it."""

    page: Page
    served: Served
    errors: list[str] = field(default_factory=list)

    def visit(self, place: str = "") -> Page:
        """``place`` is the part behind ``#/``."""
        self.page.goto(f"{self.served.url}#/{place}")
        self.page.get_by_role("heading", level=1).wait_for()
        return self.page

    def note(self, message: ConsoleMessage) -> None:
        # What the network refused is shown by the page, and tested there.
        if message.type == "error" and not message.text.startswith(NETWORK):
            self.errors.append(message.text)


Open = Callable[..., Visitor]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Opens windows; fails the test for a script error or a breach of the content policy."""
    windows: list[tuple[BrowserContext, Visitor]] = []

    def open_(
        served: Served,
        size: tuple[int, int] = DESKTOP,
        theme: str = "light",
        token: str | None = TOKEN,
    ) -> Visitor:
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,  # type: ignore[arg-type]
            reduced_motion="reduce",
        )
        context.set_default_timeout(20_000)
        if token:
            context.add_init_script(f"sessionStorage.setItem('tidegate.token', '{token}')")
        visitor = Visitor(context.new_page(), served)
        visitor.page.on("console", visitor.note)
        visitor.page.on("pageerror", lambda error: visitor.errors.append(str(error)))
        windows.append((context, visitor))
        return visitor

    yield open_
    for context, visitor in windows:
        context.close()
        assert visitor.errors == []
