"""A Spark standalone cluster and an S3 server on loopback, as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.support.faults import until
from tidegate.testing.server_user import free_port

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key-canary"
BUCKET = "lake"


@dataclass(frozen=True, slots=True)
class S3:
    """Where the server answers; path-style addresses."""

    endpoint: str

    @property
    def properties(self) -> dict[str, str]:
        """As a platform file's ``lake.catalog.properties``; Spark and PyIceberg read the same."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
            "s3.path-style-access": "true",
            "s3.region": "us-east-1",
            "client.region": "us-east-1",
        }


@contextmanager
def _process(
    command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def _get(url: str) -> bytes | None:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            body: bytes = answer.read()
            return body
    except urllib.error.HTTPError as refused:
        return refused.read()  # it answers, which is what was asked
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


@pytest.fixture(scope="session")
def spark_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``spark://…``: a master and one worker of two cores, JVMs of their own."""
    folder = tmp_path_factory.mktemp("cluster")
    home = Path(str(pyspark.__path__[0]))
    spark_class = str(home / "bin" / "spark-class")
    port, page = free_port(), free_port()
    env = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    deploy = "org.apache.spark.deploy"
    address = ["--host", "127.0.0.1"]
    master = [spark_class, f"{deploy}.master.Master", *address]
    master += ["--port", str(port), "--webui-port", str(page)]
    worker = [spark_class, f"{deploy}.worker.Worker", *address, "--cores", "2", "--memory", "2g"]
    worker += ["--webui-port", str(free_port()), "--work-dir", str(folder / "work")]
    url = f"spark://127.0.0.1:{port}"

    def workers() -> bool:
        body = _get(f"http://127.0.0.1:{page}/json/")
        return body is not None and json.loads(body)["aliveworkers"] == 1

    with (
        _process(master, folder / "master", env),
        _process([*worker, url], folder / "worker", env),
    ):
        until(workers, "the worker joined its master")
        yield url


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """An S3 server with one bucket, that refuses every other key than its own."""
    import boto3

    folder = tmp_path_factory.mktemp("s3")
    port = free_port()
    identity = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    config = {"identities": [{"name": "t", "credentials": [identity], "actions": ["Admin"]}]}
    (folder / "s3.json").write_text(json.dumps(config))
    (folder / "data").mkdir()
    command = [str(Path(sys.executable).parent / "weed"), "server", "-s3", "-ip=127.0.0.1"]
    command += ["-ip.bind=127.0.0.1", f"-dir={folder / 'data'}", f"-s3.port={port}"]
    command += [
        f"-s3.config={folder / 's3.json'}",
        "-volume.max=20",
        "-master.volumeSizeLimitMB=64",
    ]
    for part in ("master", "volume", "filer"):
        command += [f"-{part}.port={free_port()}", f"-{part}.port.grpc={free_port()}"]
    command += [f"-s3.port.{door}={free_port()}" for door in ("grpc", "iceberg", "lance")]
    server = S3(f"http://127.0.0.1:{port}")
    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )

    def ready() -> bool:
        if _get(server.endpoint) is None:
            return False
        try:
            client.create_bucket(Bucket=BUCKET)
        except client.exceptions.ClientError:
            return False  # it listens before its volumes are there
        return True

    with _process(command, folder):
        until(ready, "the S3 server took a bucket")
        yield server
