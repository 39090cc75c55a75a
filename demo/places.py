"""Where the demo keeps things, and the ports it prefers."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
HOME: Final = ROOT / ".tidegate" / "demo"

AIRFLOW_HOME: Final = HOME / "airflow"
LAKE_HOME: Final = HOME / "lake"
LOGS: Final = HOME / "logs"
TASK_LOGS: Final = LOGS / "tasks"
PIPELINES: Final = HOME / "pipelines"
PIPELINE_FILE: Final = PIPELINES / "shop.yaml"
PLATFORM_FILE: Final = HOME / "platform.yaml"
POSTGRES_DATA: Final = HOME / "postgres"
MYSQL_DATA: Final = HOME / "mariadb"
STATE_FILE: Final = HOME / "processes.json"
SETTINGS_FILE: Final = HOME / "settings.json"
REPORT_FILE: Final = HOME / "report.txt"

PIPELINE_ID: Final = "shop"
AIRFLOW_PORT: Final = 8080
POSTGRES_PORT: Final = 54329
MYSQL_PORT: Final = 33069


def port(preferred: int) -> int:
    """``preferred`` if nobody listens there, else any free one."""
    for candidate in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise AssertionError("the system hands out no port")
