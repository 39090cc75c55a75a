"""Connections to the source, their session settings pinned; also what Spark's JDBC needs."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pymysql

from tidegate.connectors.cut import JdbcRead
from tidegate.connectors.mysql.failures import translated
from tidegate.connectors.mysql.settings import PINNED, MysqlSettings

if TYPE_CHECKING:  # generic in its stubs only
    Connection = pymysql.Connection[Any]
else:
    Connection = pymysql.Connection
Row = tuple[Any, ...]

JDBC_DRIVER: Final = "org.mariadb.jdbc.Driver"
"""MariaDB's driver speaks to both servers."""
_JDBC_TLS: Final = {
    "disable": "disable",
    "allow": "disable",
    "prefer": "disable",
    "require": "trust",
    "verify-ca": "verify-ca",
    "verify-full": "verify-full",
}
_SSL_MODES: Final = ("require", "verify-ca", "verify-full")
IDLE_SECONDS: Final = 86_400
"""A connection of ours may wait that long for a slow consumer before the server drops it."""


def connect(settings: MysqlSettings) -> Connection:
    """An autocommit SQL connection."""
    pins = ", ".join(f"SESSION {name} = {value}" for name, value in PINNED.items())
    with translated(settings, "connecting"):
        return pymysql.connect(
            host=settings.host,
            port=settings.port,
            user=settings.username,
            password=settings.password.get_secret_value(),
            database=settings.database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=settings.connect_timeout_seconds,
            init_command=f"SET {pins}, SESSION net_write_timeout = {IDLE_SECONDS}",
            **_tls(settings),
        )


@contextmanager
def session(settings: MysqlSettings, doing: str) -> Iterator[Connection]:
    """An SQL connection for a few statements; what they raise is translated."""
    connection = connect(settings)
    try:
        with translated(settings, doing):
            yield connection
    finally:
        connection.close()


def query(connection: Connection, sql: str, parameters: Sequence[Any] | None = None) -> list[Row]:
    """All rows of one statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def named(connection: Connection, sql: str) -> list[dict[str, Any]]:
    """All rows of a SHOW statement, whose columns differ from server to server."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        names = [str(column[0]).lower() for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def variable(connection: Connection, name: str) -> str | None:
    """A global variable; None if this server has none of that name."""
    rows = query(connection, "SHOW GLOBAL VARIABLES WHERE Variable_name = %s", (name,))
    return str(rows[0][1]) if rows else None


def expiry_seconds(connection: Connection) -> float | None:
    """After how long the server drops its log, read or not; None: it does not by itself."""
    if (variable(connection, "binlog_expire_logs_auto_purge") or "ON").upper() == "OFF":
        return None
    seconds = float(variable(connection, "binlog_expire_logs_seconds") or 0)
    seconds = seconds or 86_400 * float(variable(connection, "expire_logs_days") or 0)
    return seconds or None


def is_mariadb(connection: Connection) -> bool:
    return "mariadb" in server_version(connection).lower()


def server_version(connection: Connection) -> str:
    return str(connection.get_server_info())  # type: ignore[no-untyped-call]


def jdbc(settings: MysqlSettings) -> JdbcRead:
    """How a Spark task reads."""
    pinned = ",".join(f"{name}={value}" for name, value in PINNED.items())
    properties = {
        "user": settings.username,
        "password": settings.password.get_secret_value(),
        "sslMode": _JDBC_TLS[settings.sslmode],
        "connectTimeout": str(settings.connect_timeout_seconds * 1000),
        "tinyInt1isBit": "false",
        "yearIsDateType": "false",
        # An option of the connection: Spark asks for the columns before it runs a statement.
        "sessionVariables": f"{pinned},net_write_timeout={IDLE_SECONDS}",
        "allowPublicKeyRetrieval": "true",
    }
    if settings.sslrootcert:
        properties["serverSslCert"] = settings.sslrootcert
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return JdbcRead(
        url=f"jdbc:mariadb://{host}:{settings.port}/",
        driver=JDBC_DRIVER,
        properties=properties,
        session_init="SET SESSION TRANSACTION READ ONLY",
    )


def _tls(settings: MysqlSettings) -> dict[str, Any]:
    if settings.sslmode not in _SSL_MODES:
        return {"ssl_disabled": True}
    if settings.sslmode == "require":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = ssl.create_default_context(cafile=settings.sslrootcert)
        context.check_hostname = settings.sslmode == "verify-full"
    return {"ssl": context}
