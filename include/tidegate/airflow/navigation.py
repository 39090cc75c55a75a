"""The page's place in Airflow's navigation."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf


def navigation(url_prefix: str) -> dict[str, Any]:
    """An entry of ``AirflowPlugin.external_views``: Airflow shows the page in a frame of its own.

    ``url_prefix`` is where the application is mounted; Airflow's base path comes before it.
    """
    base = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
    place = f"{base}{url_prefix}"
    return {
        "name": "Tidegate",
        "href": f"{place}/",
        "icon": f"{place}/static/icon.svg",
        "url_route": "tidegate",
        "destination": "nav",
        "nav_top_level": True,
    }
