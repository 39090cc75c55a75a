"""The embedded PostgreSQL: starts anywhere, keeps its data, leaves others' permissions alone."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from tidegate.errors import SetupError
from tidegate.testing.places import own_place
from tidegate.testing.postgres_binaries import WHEEL
from tidegate.testing.postgres_server import PostgresServer, running

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("version", sorted(WHEEL))
def test_each_version_starts_with_logical_decoding(version: int) -> None:
    with running(version) as server, server.connect() as connection:
        major = connection.execute("SHOW server_version_num").fetchone()[0][:2]
        assert int(major) == version
        assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)


def test_data_survives_a_crash_and_a_restart(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "data").start()
    with server.connect() as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    port = server.port
    server.restart(signal.SIGQUIT)
    try:
        assert server.port == port
        with server.connect() as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    finally:
        server.stop()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A closed directory that is not in the temporary directory, as a home is."""
    temporary, closed = tmp_path / "temporary", tmp_path / "closed"
    for directory, mode in ((tmp_path, 0o755), (temporary, 0o755), (closed, 0o700)):
        directory.mkdir(exist_ok=True)
        directory.chmod(mode)
    for parent in tmp_path.parents:
        if parent != Path(parent.root) and parent.owner() == closed.owner():
            parent.chmod(parent.stat().st_mode | 0o011)  # pytest's own, 0700 by default
        if parent == Path(tempfile.gettempdir()):
            break
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return closed


def test_a_directory_outside_the_temporary_one_keeps_its_permissions(elsewhere: Path) -> None:
    server = PostgresServer(elsewhere / "data").start()
    try:
        with server.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.stop()
    assert elsewhere.stat().st_mode & 0o777 == 0o700
    moved = os.geteuid() == 0  # the server's user cannot walk into it
    assert (server.data_dir != elsewhere / "data") is moved
    assert PostgresServer(elsewhere / "data").data_dir == server.data_dir


def test_a_name_somebody_else_took_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").symlink_to(tmp_path)
    with pytest.raises(SetupError, match="another user"):
        own_place(tmp_path / "taken")
