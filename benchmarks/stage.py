"""A server, a deployed pipeline and the peers, for one benchmark."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import workload
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.jobs.deploy import deploy
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER, PostgresServer, running

DATABASE = "bench"
PEER_SLOT = "peer"


@dataclass(frozen=True, slots=True)
class Stage:
    server: PostgresServer
    pipeline: PipelineConfig
    platform: PlatformConfig
    connection: Any
    folder: Path

    def flushed(self) -> str:
        row = self.connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        return str(row[0])

    def receive_with_peer(self) -> float:
        """Seconds pg_recvlogical takes to write the pending range to a file: the limit."""
        command = [str(self.server.bin / "pg_recvlogical"), "-d", self.server.dsn(DATABASE)]
        command += ["--slot", PEER_SLOT, "--start", "--no-loop", "--endpos", self.flushed()]
        command += ["-o", "proto_version=1"]
        command += ["-o", f"publication_names={self.pipeline.publication_name}"]
        output = self.folder / "received"
        return timed(lambda: subprocess.run([*command, "-f", str(output)], check=True))[0]

    def copy_out(self, table: str) -> float:
        """Seconds psql takes to COPY the table as text to nowhere."""
        command = [str(self.server.bin / "psql"), self.server.dsn(DATABASE)]
        command += ["-c", f"COPY {table} TO STDOUT"]
        with Path("/dev/null").open("wb") as nowhere:
            return timed(lambda: subprocess.run(command, stdout=nowhere, check=True))[0]


@contextlib.contextmanager
def stage(*tables: str, rows: int = 0, peer: bool = False, **platform: Any) -> Iterator[Stage]:
    """Tables of ``rows`` rows each, deployed; with ``peer`` a second slot on the same log."""
    with running(16, config={"shared_buffers": "512MB", "max_wal_size": "8GB"}) as server:
        server.create_database(DATABASE)
        connection = server.connect(DATABASE)
        for table in tables:
            workload.create(connection, table, rows)
        with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
            pipeline = PipelineConfig.model_validate(
                {
                    "pipeline_id": DATABASE,
                    "source": {
                        "host": "127.0.0.1",
                        "port": server.port,
                        "database": DATABASE,
                        "username": SUPERUSER,
                        "password": PASSWORD,
                        "tables": [f"public.{table}" for table in tables],
                    },
                }
            )
            config = {"lake": {"home": f"{folder}/home"}, **platform}
            settings = PlatformConfig.model_validate(config)
            deploy(pipeline, settings)
            if peer:
                connection.execute(
                    "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [PEER_SLOT]
                )
            yield Stage(server, pipeline, settings, connection, Path(folder))
        connection.close()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
