"""Connections to the source, their session settings pinned; also what Spark's JDBC needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from tidegate.connectors.cut import JdbcRead
from tidegate.connectors.postgres.failures import translated
from tidegate.connectors.postgres.settings import PINNED, UNBOUNDED, PostgresSettings

Connection = psycopg.Connection[tuple[Any, ...]]

APPLICATION: Final = "tidegate"
JDBC_DRIVER: Final = "org.postgresql.Driver"
_KEEPALIVE: Final[dict[str, Any]] = {  # a dead peer is noticed after about a minute
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


def connect(settings: PostgresSettings, purpose: str) -> Connection:
    """An autocommit SQL connection."""
    return _open(settings, purpose, {})


def connect_replication(settings: PostgresSettings, purpose: str) -> Connection:
    """A connection that speaks the replication protocol as well as SQL.

    Used through its ``pgconn`` (libpq) alone: the driver has no replication support of its own, so
    nothing but our own messages is ever confirmed to the server (I2).
    """
    return _open(settings, purpose, {"replication": "database"})


@contextmanager
def session(settings: PostgresSettings, purpose: str) -> Iterator[Connection]:
    """An SQL connection for a few statements; what they raise is translated."""
    connection = connect(settings, purpose)
    try:
        with translated(settings, purpose):
            yield connection
    finally:
        connection.close()


def jdbc(settings: PostgresSettings, snapshot_name: str) -> JdbcRead:
    """How a Spark task reads at ``snapshot_name``."""
    # A TRUNCATE of the application queues behind the cut's locks and these reads behind it: without
    # a limit neither would ever go on, nor would anything else that wants the table (I11).
    # An option of the connection: Spark asks for the columns before it runs a statement of ours.
    limit = f"-c lock_timeout={int(settings.lock_timeout_seconds * 1000)}"
    pinned = "".join(f"SET {name} = '{value}'; " for name, value in _session().items())
    properties = {
        "user": settings.username,
        "password": settings.password.get_secret_value(),
        "sslmode": settings.sslmode,
        "ApplicationName": f"{APPLICATION} sweep",
        "connectTimeout": str(settings.connect_timeout_seconds),
        "tcpKeepAlive": "true",
        "options": limit,
        # Binary results from the first execution on: a sweep executes each statement once.
        "prepareThreshold": "-1",
    }
    if settings.sslrootcert:
        properties["sslrootcert"] = settings.sslrootcert
    return JdbcRead(
        url=f"jdbc:postgresql://{_jdbc_host(settings.host)}:{settings.port}/{_database(settings)}",
        driver=JDBC_DRIVER,
        properties=properties,
        session_init=f"{pinned}SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
        f" SET TRANSACTION SNAPSHOT '{snapshot_name}'",
    )


def _open(settings: PostgresSettings, purpose: str, more: dict[str, Any]) -> Connection:
    arguments: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "dbname": settings.database,
        "user": settings.username,
        "password": settings.password.get_secret_value(),
        "sslmode": settings.sslmode,
        "connect_timeout": settings.connect_timeout_seconds,
        "application_name": f"{APPLICATION} {purpose}",
        "client_encoding": "UTF8",
        "options": " ".join(f"-c {n}={_escaped(v)}" for n, v in _session().items()),
        **_KEEPALIVE,
        **more,
    }
    if settings.sslrootcert:
        arguments["sslrootcert"] = settings.sslrootcert
    with translated(settings, "connecting"):
        return psycopg.connect(autocommit=True, **arguments)


def _session() -> dict[str, str]:
    return {**PINNED, **UNBOUNDED}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _jdbc_host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _database(settings: PostgresSettings) -> str:
    from urllib.parse import quote

    return quote(settings.database, safe="")
