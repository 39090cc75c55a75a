"""Secrets that replace a source's host, port, username and password.

Airflow's hook, or the environment, gives them; they travel to a Spark job in a file only its owner
can read, which is deleted as soon as it is read (I9).
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr, ValidationError

from tidegate.config.base import Section
from tidegate.config.pipeline import PipelineConfig
from tidegate.errors import ConfigError

_OWNER_ONLY: Final = 0o600
CONNECTION_VARIABLE_PREFIX: Final = "AIRFLOW_CONN_"
"""Airflow's own spelling, so that one variable serves Airflow and the CLI."""


class Secrets(Section):
    """What a connection replaces in ``source``; unset values leave the file's."""

    host: str | None = None
    port: int | None = Field(None, ge=1, le=65535)
    username: str | None = None
    password: SecretStr | None = None


def apply_secrets(pipeline: PipelineConfig, secrets: Secrets | None) -> PipelineConfig:
    """The pipeline with the connection's values in its source."""
    if secrets is None:
        return pipeline
    given = {name: value for name in Secrets.model_fields if (value := getattr(secrets, name))}
    source = pipeline.source.model_copy(update=given)
    return pipeline.model_copy(update={"source": source})


def write_secrets_file(path: Path, secrets: Secrets) -> None:
    """Write a new file that only its owner can read."""
    values = secrets.model_dump(exclude_none=True)
    if secrets.password is not None:
        values["password"] = secrets.password.get_secret_value()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(values, file)


def read_secrets_file(path: Path) -> Secrets:
    """Read and delete. A file that others may read is refused (and deleted all the same)."""
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read()
    except OSError as error:
        raise ConfigError(
            "secrets.file_unreadable",
            f"the secrets file {path} cannot be read: {error.strerror}",
            hint="it is deleted once read: write a new one for each run",
        ) from error
    path.unlink(missing_ok=True)
    if mode & ~_OWNER_ONLY:
        raise ConfigError(
            "secrets.file_mode",
            f"the secrets file {path} had mode {mode:04o}",
            hint="create it with mode 0600, and change the password: others could read it",
        )
    try:
        return Secrets.model_validate(json.loads(text))
    except (ValueError, ValidationError):
        raise _unreadable(f"the secrets file {path}") from None  # the cause would quote it (I9)


def connection_variable(connection_id: str) -> str:
    """The environment variable that holds an Airflow connection."""
    return CONNECTION_VARIABLE_PREFIX + connection_id.upper()


def secrets_from_environment(
    connection_id: str, environ: Mapping[str, str] | None = None
) -> Secrets:
    """An Airflow connection from ``AIRFLOW_CONN_<ID>``, as JSON or as a URI."""
    name = connection_variable(connection_id)
    text = (os.environ if environ is None else environ).get(name)
    if not text:
        raise ConfigError(
            "secrets.connection_missing",
            f"the connection {connection_id} is not in the environment",
            hint=f"outside Airflow, set {name} (JSON or URI), or remove source.connection_id and"
            " give host, username and password",
        )
    try:
        return Secrets.model_validate(_from_json(text) if text.startswith("{") else _from_uri(text))
    except (ValueError, ValidationError):
        raise _unreadable(name) from None


def _from_json(text: str) -> dict[str, Any]:
    data = json.loads(text)
    return {
        "host": data.get("host"),
        "port": data.get("port"),
        "username": data.get("login"),
        "password": data.get("password"),
    }


def _from_uri(text: str) -> dict[str, Any]:
    parts = urlsplit(text)
    return {
        "host": unquote(parts.hostname) if parts.hostname else None,
        "port": parts.port,
        "username": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
    }


def _unreadable(what: str) -> ConfigError:
    return ConfigError(
        "secrets.unreadable",
        f"{what} is not a connection",
        hint='JSON like {"host": "…", "port": 5432, "username": "…", "password": "…"}'
        " (Airflow's variable: login in place of username, or a URI)",
    )
