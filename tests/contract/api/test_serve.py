"""``tidegate serve`` as a process of its own: loopback and a token, TLS and client certificates."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.api import PIPELINE

ROOT = Path(__file__).parents[3]
ENTRY = "import sys; from tidegate.cli.main import main; main(sys.argv[1:])"
SECONDS = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.yaml").write_text(PIPELINE)
    (tmp_path / "platform.yaml").write_text("lake: {home: home}\n")
    return tmp_path


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", ENTRY, "serve", "--pipelines", "pipelines", *words]


def environment(**variables: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    own = {"PYTHONPATH": str(ROOT / "include"), "TIDEGATE_PLATFORM_FILE": "platform.yaml"}
    return kept | own | variables


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(folder: Path, *words: str, **variables: str) -> Iterator[tuple[int, Path]]:
    port, said = free_port(), folder / "said.txt"
    with (
        said.open("w") as out,
        subprocess.Popen(
            command("--port", str(port), *words),
            cwd=folder,
            env=environment(**variables),
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                with socket.socket() as trying:
                    if trying.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None, said.read_text()
                time.sleep(0.1)  # a poll with a deadline
            yield port, said
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)


def test_a_made_up_token_is_in_a_file_and_not_in_the_output(folder: Path) -> None:
    with serving(folder, "--allowed-host", "cdc.example.org") as (port, said):
        token = (folder / "home" / "api-token").read_text().split()[2]
        url = f"http://127.0.0.1:{port}/api/v1/cdc/connectors"
        with httpx.Client(trust_env=False) as client:
            assert client.get(url).status_code == 401
            signed = {"authorization": f"Bearer {token}"}
            answer = client.get(url, headers=signed)
            for host, status in (("cdc.example.org", 200), ("evil.example", 403)):
                assert client.get(url, headers=signed | {"host": host}).status_code == status
        assert [item["name"] for item in answer.json()["items"]] == ["shop"]
        assert "server" not in answer.headers
        assert token not in said.read_text() and "api-token" in said.read_text()


def test_client_certificates_stand_in_for_tokens(folder: Path) -> None:
    certificates(folder)
    tls = ["--tls-cert", "server.pem", "--tls-key", "server.key", "--client-ca", "ca.pem"]
    with serving(folder, *tls) as (port, _):
        url = f"https://127.0.0.1:{port}/api/v1/cdc/connectors"
        trusting = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        stranger = httpx.Client(trust_env=False, verify=trusting)
        with stranger, pytest.raises(httpx.TransportError):
            stranger.get(url)
        trusting.load_cert_chain(folder / "client.pem", folder / "client.key")
        with httpx.Client(trust_env=False, verify=trusting) as known:
            assert known.get(url).status_code == 200
            stop = known.post(f"{url}/shop/stop")
            assert (stop.status_code, stop.json()["code"]) == (403, "api.role")


def test_another_address_without_tls_is_refused(folder: Path) -> None:
    done = subprocess.run(
        command("--host", "0.0.0.0"),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 2 and "serve.exposed" in done.stderr


def certificates(folder: Path) -> None:
    """An authority, and certificates of it for a server and a client."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test ca"),
        *("-addext", "keyUsage=critical,keyCertSign"),
        *("-keyout", "ca.key", "-out", "ca.pem"),
    )
    for name in ("server", "client"):
        request = ("-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("req", "-newkey", "rsa:2048", "-nodes", *request)
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signed),
            *("-extfile", "names"),
        )
