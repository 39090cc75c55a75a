"""Callers of the HTTP API under Airflow: Airflow's own login, and its roles on the pipeline's Dags.

A plugin's application gets neither by itself. ``read`` is reading the pipeline's Dags, ``edit``
triggering them, ``admin`` deleting them and changing connections. A caller is known by a bearer
token or by the session's cookie; a cookie alone counts for requests of Airflow's own pages only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.configuration import conf
from airflow.models.dag import DagModel
from jwt import InvalidTokenError
from starlette.concurrency import run_in_threadpool

from tidegate.api.access import Access, Role, bearer_token, refuse_cross_site
from tidegate.api.problems import Refused
from tidegate.observability.caller import LONGEST, Caller, Surface

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

READS: Final = "changes"
"""The kind of Dag every pipeline has: who may read it may read the pipeline."""


class AirflowAuthorizer:
    """Implements ``Authorizer`` on Airflow's auth manager."""

    async def authorize(
        self, connection: HTTPConnection, role: Role, pipeline: str | None
    ) -> Access:
        token = bearer_token(connection)
        if token is None:
            token = connection.cookies.get(COOKIE_NAME_JWT_TOKEN)
            if token is not None:
                refuse_cross_site(connection, own_origin())
        if not token:
            raise Refused(
                401,
                "api.no_token",
                "the request names no caller",
                hint="log in to Airflow, or send a token of its POST /auth/token",
            )
        try:
            user = await get_auth_manager().get_user_from_token(token)
        except InvalidTokenError as error:
            raise Refused(
                401,
                "api.unknown_token",
                "Airflow does not know this token, or it has run out",
                hint="log in again",
            ) from error
        if not await run_in_threadpool(may, user, role, pipeline):
            raise Refused(
                403,
                "api.role",
                f"this needs the role {role} on the pipeline",
                hint="ask whoever gives roles in Airflow",
            )
        caller = Caller(str(user.get_name())[:LONGEST], Surface.API)
        return Access(caller, cache(lambda name: may(user, Role.READ, name)))


def may(user: Any, role: Role, pipeline: str | None) -> bool:
    """Whether Airflow lets ``user`` do that to the pipeline's Dags."""
    manager = get_auth_manager()
    dag_id = f"{pipeline}__{READS}" if pipeline else None
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id) if dag_id else None)
    if not manager.is_authorized_dag(method="GET", details=details, user=user):
        return False
    if role is Role.READ:
        return True
    run = DagAccessEntity.RUN
    if not manager.is_authorized_dag(method="POST", access_entity=run, details=details, user=user):
        return False
    if role is Role.EDIT:
        return True
    deletes = manager.is_authorized_dag(method="DELETE", details=details, user=user)
    return bool(deletes and manager.is_authorized_connection(method="PUT", user=user))


@cache
def own_origin() -> str | None:
    """The server's public name, which behind a proxy is not the Host header's."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").netloc or None
