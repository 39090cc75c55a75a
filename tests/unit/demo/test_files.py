"""What the demo writes is what a user could have written, and keeps secrets to itself."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from demo import airflow_config, pipeline, places, shops
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.testing.postgres_server import PostgresServer


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PIPELINES", "PIPELINE_FILE", "PLATFORM_FILE", "LAKE_HOME", "AIRFLOW_HOME"):
        here = tmp_path / Path(getattr(places, name)).relative_to(places.HOME)
        monkeypatch.setattr(places, name, here)
    return tmp_path


def shop(kind: str) -> shops.Shop:
    server = PostgresServer(places.POSTGRES_DATA, port=54329)
    return shops.of(kind, server, {"mysql_port": 33069})


@pytest.mark.parametrize("kind", shops.KINDS)
def test_the_demo_pipeline_and_platform_files_load(
    home: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("SHOP_CDC_PASSWORD", "not-in-the-file")
    pipeline.write_pipeline(shop(kind), changes_schedule=None)

    loaded = load_pipeline(places.PIPELINE_FILE)
    platform = load_platform(places.PLATFORM_FILE)

    assert [target.name for target in loaded.targets] == list(shops.TABLES)
    assert loaded.source.source_type == kind
    assert loaded.schedules.changes is None
    assert loaded.source.password.get_secret_value() == "not-in-the-file"
    assert "not-in-the-file" not in places.PIPELINE_FILE.read_text()
    assert platform.lake.home == str(home / "lake")


def test_a_schedule_is_written_only_if_wanted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_CDC_PASSWORD", "x")
    pipeline.write_pipeline(shop("postgres"), changes_schedule="*/2 * * * *")
    assert load_pipeline(places.PIPELINE_FILE).schedules.changes == "*/2 * * * *"


def test_airflow_listens_on_loopback_and_its_secrets_are_private(home: Path) -> None:
    keys = airflow_config.Keys.load(home / "keys.json")
    airflow_config.write(keys, port=8080, postgres_port=54329)

    cfg = configparser.RawConfigParser()
    cfg.read(airflow_config.cfg_file())
    assert cfg["api"]["host"] == "127.0.0.1"
    assert "127.0.0.1" in cfg["database"]["sql_alchemy_conn"]
    for file in (home / "keys.json", airflow_config.cfg_file(), home / "airflow/passwords.json"):
        assert file.stat().st_mode & 0o077 == 0, file


def test_the_keys_stay_the_same_from_one_start_to_the_next(home: Path) -> None:
    first = airflow_config.Keys.load(home / "keys.json")
    assert airflow_config.Keys.load(home / "keys.json") == first


def test_the_example_pipeline_and_the_project_platform_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TIDEGATE_HOME", raising=False)
    config = places.ROOT / "include" / "config"
    assert load_pipeline(config / "examples" / "orders.yaml").pipeline_id == "orders"
    assert load_platform(config / "platform.yaml").lake.home == str(places.ROOT / ".tidegate")
