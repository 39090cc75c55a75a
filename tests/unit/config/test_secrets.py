"""Secrets files and connections from the environment."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from tidegate.config.loader import load_pipeline
from tidegate.config.secrets import (
    Secrets,
    apply_secrets,
    read_secrets_file,
    secrets_from_environment,
    write_secrets_file,
)
from tidegate.errors import ConfigError

SPEC_EXAMPLE = Path(__file__).parent / "data" / "spec_example.yaml"
SECRETS = Secrets(host="db", port=6000, username="u", password=SecretStr("hunter2"))


def test_a_secrets_file_is_owner_only_and_gone_once_read(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    write_secrets_file(path, SECRETS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_secrets_file(path) == SECRETS
    assert not path.exists()


def test_a_secrets_file_is_never_written_over_another(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text("{}")
    with pytest.raises(FileExistsError):
        write_secrets_file(path, SECRETS)


def test_a_file_others_can_read_is_refused_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text('{"password": "hunter2"}')
    path.chmod(0o644)
    with pytest.raises(ConfigError) as caught:
        read_secrets_file(path)
    assert caught.value.code == "secrets.file_mode"
    assert not path.exists()


@pytest.mark.parametrize("text", ["hunter2", '{"password": ["hunter2"]}', '{"hunter2": 1}'])
def test_a_broken_secrets_file_is_refused_without_its_content(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secrets.json"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_secrets_file(path)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_secrets_replace_what_they_hold_and_leave_the_rest() -> None:
    pipeline = load_pipeline(SPEC_EXAMPLE)
    source = apply_secrets(pipeline, Secrets(host="db", password=SecretStr("p"))).source
    assert (source.host, source.port, source.username) == ("db", 5432, "cdc_user")
    assert source.password.get_secret_value() == "p"
    assert apply_secrets(pipeline, None) is pipeline


@pytest.mark.parametrize(
    "value",
    [
        '{"conn_type": "postgres", "host": "db", "port": 6000, "login": "u", "password": "p@/1"}',
        "postgres://u:p%40%2F1@db:6000/shop",
    ],
)
def test_an_airflow_connection_is_read_from_its_variable(value: str) -> None:
    found = secrets_from_environment("shop_db", {"AIRFLOW_CONN_SHOP_DB": value})
    assert (found.host, found.port, found.username) == ("db", 6000, "u")
    assert found.password is not None and found.password.get_secret_value() == "p@/1"


def test_a_missing_connection_says_which_variable_to_set() -> None:
    with pytest.raises(ConfigError, match="AIRFLOW_CONN_SHOP"):
        secrets_from_environment("shop", {})


def test_a_broken_connection_variable_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as caught:
        secrets_from_environment("shop", {"AIRFLOW_CONN_SHOP": '{"port": "hunter2"'})
    assert "hunter2" not in str(caught.value)
