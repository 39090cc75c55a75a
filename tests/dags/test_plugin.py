"""Airflow's API server mounts the plugin's application."""

from __future__ import annotations

import asyncio
import importlib.util
from types import ModuleType

import httpx
from fastapi import FastAPI

import tidegate
from tests.dags.conftest import PROJECT


def load_plugin() -> ModuleType:
    """As Airflow does: by its file name, as a top-level module."""
    spec = importlib.util.spec_from_file_location(
        "tidegate_plugin", PROJECT / "plugins" / "tidegate_plugin.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_health_says_the_version_and_nothing_else() -> None:
    (entry,) = load_plugin().TidegatePlugin.fastapi_apps
    server = FastAPI()
    server.mount(entry["url_prefix"], entry["app"])

    async def get(path: str) -> httpx.Response:
        transport = httpx.ASGITransport(app=server)
        async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
            return await client.get(path)

    health = asyncio.run(get("/tidegate/health"))
    assert health.json() == {"status": "ok", "version": tidegate.__version__}
    for page in ("openapi.json", "docs", "redoc"):
        assert asyncio.run(get(f"/tidegate/{page}")).status_code == 404
