"""One file per source under ``examples/cdc``: it loads as it is, and its changes are captured."""

from __future__ import annotations


import pytest

from tests.support.documented import ROOT
from tests.support.mysql import MysqlDatabase
from tests.support.postgres import SourceDatabase
from tidegate.config.loader import load_pipeline
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER

EXAMPLES = ROOT / "examples" / "cdc"
TABLES = (
    "CREATE TABLE customers (id int PRIMARY KEY, name varchar(50))",
    "CREATE TABLE orders (id int PRIMARY KEY, customer int, created_at timestamp NULL)",
)
ROWS = (
    "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo')",
    "INSERT INTO orders VALUES (1, 2, '2026-03-02 10:00:00')",
)


def test_every_source_that_comes_with_tidegate_has_an_example() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.yaml")} == {"postgres", "mysql", "mariadb"}


@pytest.mark.postgres
def test_postgres(
    source_db: SourceDatabase, platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach(monkeypatch, "127.0.0.1", source_db.server.port, source_db.name, SUPERUSER, PASSWORD)
    source_db.sql(*TABLES)
    pipeline = load_pipeline(EXAMPLES / "postgres.yaml")
    deploy(pipeline, platform)
    source_db.sql(*ROWS)
    assert captured(pipeline, platform) == ["public.customers", "public.customers", "public.orders"]


@pytest.mark.mysql
@pytest.mark.parametrize("example", ["mysql", "mariadb"])
def test_mysql_and_mariadb(
    example: str,
    request: pytest.FixtureRequest,
    platform: PlatformConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = {"mysql": "mysql8_db", "mariadb": "mysql_db"}[example]
    db: MysqlDatabase = request.getfixturevalue(name)
    source = db.pipeline("customers").source
    password = source.password
    assert password is not None
    reach(
        monkeypatch,
        source.host,
        db.server.port,
        db.name,
        source.username,
        password.get_secret_value(),
    )
    db.sql(*TABLES)
    pipeline = load_pipeline(EXAMPLES / f"{example}.yaml")
    deploy(pipeline, platform)
    db.sql(*ROWS)
    tables = [f"{db.name}.customers", f"{db.name}.customers", f"{db.name}.orders"]
    assert captured(pipeline, platform) == tables


def reach(
    monkeypatch: pytest.MonkeyPatch, host: str, port: int, name: str, user: str, password: str
) -> None:
    """What a user says of his own database."""
    said = {"HOST": host, "PORT": port, "DATABASE": name, "USER": user, "PASSWORD": password}
    for key, value in said.items():
        monkeypatch.setenv(f"SHOP_{key}", str(value))


def captured(pipeline: PipelineConfig, platform: PlatformConfig) -> list[str]:
    run_capture(pipeline, platform)
    log = ChangeLog(open_catalog(platform, pipeline), pipeline).table()
    return sorted(log.scan(selected_fields=("table",)).to_arrow()["table"].to_pylist())
