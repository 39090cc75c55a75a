"""One database server process on loopback: what PostgreSQL's and MariaDB's have in common."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

from tidegate.errors import SetupError
from tidegate.testing.server_user import demoted, free_port, placed

START_SECONDS: Final = 60.0


class ServerProcess:
    """Start, stop, restart, kill. The data directory outlives a stop.

    ``data_dir`` is where the data really is: under root it may differ from what was asked for.
    """

    ending: ClassVar[signal.Signals]  # what it shuts down at, at once and cleanly
    starting: ClassVar[type[Exception]]  # what a client gets from one that is not ready

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = placed(data_dir)
        self.port = port or free_port()
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __str__(self) -> str:
        raise NotImplementedError

    def connect(self) -> Any:
        """An autocommit connection of a user who may do everything."""
        raise NotImplementedError

    def _is_installed(self) -> bool:
        raise NotImplementedError

    def _install(self) -> None:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> Self:
        """Initialise the data directory if it is new, then start and wait until it answers."""
        if not self._is_installed():
            self._install()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self._environment,
                **demoted(),
            )
        self._wait()
        return self

    def stop(self, how: signal.Signals | None = None) -> None:
        """Cleanly, unless told by which signal."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(how or self.ending)
            self._process.wait(timeout=START_SECONDS)
        self._process = None

    def restart(self, how: signal.Signals | None = None) -> None:
        self.stop(how)
        self.start()

    @property
    def _log(self) -> Path:
        return self.data_dir / "server.log"

    def _initialise(self, command: list[str], hint: str) -> None:
        """Run the server's own program that fills a data directory."""
        done = subprocess.run(command, capture_output=True, text=True, check=False, **demoted())
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()[-400:]
            raise SetupError(
                "testing.server_install",
                f"{self}: no data directory in {self.data_dir}: {said}",
                hint=hint,
            )

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except self.starting as error:
                process = self._process
                if process is None or process.poll() is not None or time.monotonic() > deadline:
                    log = self._log.read_text(errors="replace")[-800:]
                    raise SetupError(
                        "testing.server_start",
                        f"{self} did not start: {log}",
                        hint=f"see {self._log}",
                    ) from error
                time.sleep(0.05)  # polling a server that is starting, not synchronising


Server = TypeVar("Server", bound=ServerProcess)


@contextlib.contextmanager
def temporary(make: type[Server], prefix: str, **options: Any) -> Iterator[Server]:
    """A server in a temporary directory, gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix=prefix))
    server = make(root / "data", **options)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)
