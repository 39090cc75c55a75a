"""The HTTP API as Airflow's API server mounts it.

Every process of Airflow loads its plugins; only the API server is ever asked. The application, and
with it PyIceberg, is built when the first request comes.
"""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from tidegate.config.pipeline import PipelineConfig

PROJECT = Path(__file__).absolute().parents[3]


class MountedApi:
    """An ASGI application that is made when it is needed."""

    def __init__(self, project: Path = PROJECT) -> None:
        self._project = project
        self._building = asyncio.Lock()
        self._app: FastAPI | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._building:
            if self._app is None:
                self._app = await asyncio.to_thread(airflow_app, self._project)
        await self._app(scope, receive, send)


@cache
def airflow_app(project: Path = PROJECT) -> FastAPI:
    """The application with Airflow's login, Airflow's roles and Airflow's Dags."""
    from tidegate.airflow.access import AirflowAuthorizer
    from tidegate.airflow.factory import pipelines_dir, platform_path
    from tidegate.airflow.runs import DagRunner
    from tidegate.api.app import create_app
    from tidegate.api.pipelines import Pipelines
    from tidegate.config.loader import load_platform

    platform_file = platform_path(project)
    pipelines = Pipelines(
        pipelines_dir(project), load_platform(platform_file), platform_file, with_connection
    )
    runner = DagRunner(lambda name: pipelines.get(name).pipeline.source.tables)
    return create_app(pipelines, AirflowAuthorizer(), runner)


def with_connection(file: Path) -> PipelineConfig:
    """The pipeline with its Airflow connection's values."""
    from tidegate.airflow.hooks.source import source_secrets
    from tidegate.config.secrets import apply_secrets

    return apply_secrets(*source_secrets(str(file)))
