"""Mounts Tidegate's HTTP application and page into Airflow's API server under /tidegate."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from tidegate.airflow.api import MountedApi
from tidegate.airflow.navigation import navigation

PLACE = "/tidegate"


class TidegatePlugin(AirflowPlugin):
    name = "tidegate"
    fastapi_apps: ClassVar[list[dict[str, Any]]] = [
        {"name": "tidegate", "app": MountedApi(), "url_prefix": PLACE}
    ]
    external_views: ClassVar[list[dict[str, Any]]] = [navigation(PLACE)]
