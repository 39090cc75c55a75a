"""A real schema registry on loopback for tests: Apicurio, by its Confluent-compatible API.

It keeps everything in memory; a restart forgets, which is what a test of a new registry wants.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx

from tidegate.errors import SetupError
from tidegate.testing.maven import Archive, fetch, java
from tidegate.testing.places import own_place, stable_place, take
from tidegate.testing.server_user import free_port

ARCHIVE: Final = Archive("io.apicurio", "apicurio-registry-app", "3.0.9", "all", "tar.gz")
API: Final = "/apis/ccompat/v7"
START_SECONDS: Final = 120.0
"""Eight on an idle machine; a suite's neighbours may be busy."""


class RegistryServer:
    """One registry process."""

    def __init__(self, log: Path, port: int | None = None) -> None:
        self.port = port or free_port()
        self._program = _unpacked()
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{API}"

    def start(self) -> RegistryServer:
        options = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        options += ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={self.port}"]
        environment = {k: v for k, v in os.environ.items() if k != "JDK_JAVA_OPTIONS"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [java(), *options, "-jar", str(self._program)],
                cwd=self._log.parent,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self._wait()
        return self

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                if httpx.get(f"{self.url}/subjects", timeout=5).status_code == httpx.codes.OK:
                    return
            except httpx.HTTPError:
                pass  # not up yet
            gone = self._process is None or self._process.poll() is not None
            if gone or time.monotonic() > deadline:
                told = self._log.read_text(errors="replace")[-800:]
                self.stop()
                raise SetupError(
                    "testing.registry", f"{ARCHIVE} did not start: {told}", hint=f"see {self._log}"
                )
            time.sleep(0.1)  # polling a server that is starting, not synchronising


@contextlib.contextmanager
def running() -> Iterator[RegistryServer]:
    """A registry that is gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix="tidegate-registry-"))
    server = RegistryServer(root / "server.log")
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


def _unpacked() -> Path:
    """The program, fetched and unpacked once on this machine."""
    target = own_place(stable_place("tidegate-registry", str(ARCHIVE)))
    if not target.exists():
        staging = Path(tempfile.mkdtemp(prefix="tidegate-registry-"))
        archive = fetch(ARCHIVE, staging)
        with tarfile.open(archive) as tar:
            tar.extractall(staging, filter="data")
        archive.unlink()
        take(staging, target)
    return target / f"{ARCHIVE.name}-{ARCHIVE.version}-runner.jar"
