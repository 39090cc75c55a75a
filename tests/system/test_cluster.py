"""A pipeline on a cluster: Spark standalone, the lake on S3, the catalog in PostgreSQL.

Nothing may depend on local mode, on a shared disk or on the default catalog.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.support.cli import Cli, configured
from tests.support.cluster import BUCKET, S3, SECRET_KEY
from tests.support.postgres import SourceDatabase
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


@pytest.fixture
def cli(tmp_path: Path, source_db: SourceDatabase, s3: S3, spark_master: str) -> Cli:
    made = configured(tmp_path, source_db, "public.orders")
    catalog = source_db.server.create_database(f"{source_db.name}_catalog")
    platform: dict[str, Any] = yaml.safe_load((tmp_path / "platform.yaml").read_text())
    platform["lake"] |= {
        "warehouse": f"s3://{BUCKET}/{source_db.name}",
        "catalog": {
            "type": "jdbc",
            "uri": f"postgresql://127.0.0.1:{source_db.server.port}/{catalog}",
            "properties": {
                "jdbc.user": SUPERUSER,
                "jdbc.password": PASSWORD,
                **s3.properties,
            },
        },
    }
    platform["spark"] |= {"master": spark_master}
    platform["spark"]["conf"] |= {
        "spark.executor.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    (tmp_path / "platform.yaml").write_text(yaml.safe_dump(platform))
    return made


def test_swept_changed_and_verified(cli: Cli, source_db: SourceDatabase) -> None:
    source_db.sql(
        "CREATE TABLE orders (id int PRIMARY KEY, note text, price numeric(10,2), at timestamptz)",
        "INSERT INTO orders SELECT i, 'first', i / 7.0, now() FROM generate_series(1, 2000) i",
    )
    with Arguments() as seen:
        assert cli.result("run", "--once")["swept"] == ["public.orders"]
    assert any("CoarseGrainedExecutorBackend" in line for line in seen.lines), "on the cluster"
    assert not [line for line in seen.lines if SECRET_KEY in line], "secrets in arguments (I9)"

    source_db.sql(
        "UPDATE orders SET note = 'second' WHERE id <= 10",
        "DELETE FROM orders WHERE id > 1990",
        "INSERT INTO orders VALUES (5000, 'new', NULL, now())",
    )
    cli.result("run", "--once")
    (verdict,) = cli.result("verify")["tables"]
    assert (verdict["status"], verdict["lake_rows"]) == ("equal", 1991)
    assert not (cli.folder / "home" / "warehouse").exists(), "the lake is on S3 alone"


class Arguments:
    """The arguments of every process on this machine, while the block lasts."""

    def __init__(self) -> None:
        self.lines: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Arguments:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.2):
            for process in psutil.process_iter(["cmdline"]):
                self.lines.add(" ".join(process.info["cmdline"] or ()))
