"""Airflow's configuration for the demo: one file, everything on loopback, short waits.

It is written as ``airflow.cfg`` into the demo's AIRFLOW_HOME, so that the ``airflow`` command of
the same environment sees the same installation.
"""

from __future__ import annotations

import base64
import configparser
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from demo import places
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER

USER = "admin"
DATABASE = "airflow"
PRELOADED = "airflow.sdk.execution_time.task_runner,tidegate.airflow.factory,tidegate.lake.gate"


@dataclass(frozen=True)
class Keys:
    """What the components share; made once per demo home."""

    password: str
    jwt: str
    api: str
    fernet: str

    @classmethod
    def load(cls, file: Path) -> Keys:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            fernet = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
            made = {
                "password": secrets.token_urlsafe(9),
                "jwt": secrets.token_hex(32),
                "api": secrets.token_hex(32),
                "fernet": fernet,
            }
            write_private(file, json.dumps(made))
        return cls(**json.loads(file.read_text()))


def write_private(file: Path, text: str) -> None:
    """Readable by its owner only, from the first byte on."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)


def write(keys: Keys, *, port: int, postgres_port: int) -> None:
    """``airflow.cfg`` and the password file of the simple auth manager."""
    address = f"{SUPERUSER}:{PASSWORD}@127.0.0.1:{postgres_port}/{DATABASE}"
    passwords = places.AIRFLOW_HOME / "passwords.json"
    sections: dict[str, dict[str, str]] = {
        "core": {
            "dags_folder": str(places.ROOT / "dags"),
            "plugins_folder": str(places.ROOT / "plugins"),
            "load_examples": "False",
            "dagbag_import_timeout": "120",
            # The demo's Dags have no schedule unless `make up WRITER=1` gives them one.
            "dags_are_paused_at_creation": "False",
            "executor": "LocalExecutor",
            "parallelism": "8",
            "fernet_key": keys.fernet,
            "simple_auth_manager_users": f"{USER}:admin",
            "simple_auth_manager_passwords_file": str(passwords),
            "execution_api_server_url": f"http://127.0.0.1:{port}/execution/",
        },
        "database": {
            "sql_alchemy_conn": f"postgresql+psycopg2://{address}",
            "sql_alchemy_conn_async": f"postgresql+asyncpg://{address}",
        },
        "api": {
            "host": "127.0.0.1",
            "port": str(port),
            "base_url": f"http://127.0.0.1:{port}",
            "secret_key": keys.api,
            "instance_name": "Tidegate demo",
        },
        "api_auth": {"jwt_secret": keys.jwt},
        "scheduler": {
            # Workers fork from a server that has imported what every task needs.
            "mp_start_method": "forkserver",
            "mp_forkserver_preload": PRELOADED,
            "scheduler_idle_sleep_time": "0.5",
            "enable_health_check": "False",
        },
        "triggerer": {"job_heartbeat_sec": "2"},
        "dag_processor": {
            "refresh_interval": "10",
            "min_file_process_interval": "30",
            "parsing_processes": "1",
            "dag_file_processor_timeout": "300",
        },
        # A machine that is busy with Spark answers late; that is no reason to fail a task.
        "workers": {"execution_api_timeout": "60"},
        "logging": {
            "base_log_folder": str(places.TASK_LOGS),
            "dag_processor_child_process_log_directory": str(places.LOGS / "dag-processor"),
            "colored_console_log": "False",
        },
    }
    parser = configparser.RawConfigParser()
    parser.read_dict(sections)
    places.AIRFLOW_HOME.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(cfg_file(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        parser.write(out)
    write_private(passwords, json.dumps({USER: keys.password}) + "\n")


def cfg_file() -> Path:
    return places.AIRFLOW_HOME / "airflow.cfg"
