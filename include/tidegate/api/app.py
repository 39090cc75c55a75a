"""The HTTP application that Airflow's plugin mounts.

For now it answers one question: is it there. Status and actions come with the HTTP API; until then
``tidegate`` on the command line is the way. Airflow adds no login to plugin applications: nothing
here may tell more than a stranger may know.
"""

from __future__ import annotations

from fastapi import FastAPI

import tidegate


def create_app() -> FastAPI:
    """The application; without the interactive pages FastAPI adds by itself."""
    app = FastAPI(title="Tidegate", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok", "version": tidegate.__version__}

    return app
