"""MySQL's errors in our words: what to retry, what to fix, never a password or a value (I9)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pymysql

from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.errors import ConfigError, HeldError, RetriableError, SetupError, TidegateError

_LOGIN: Final = frozenset({1044, 1045, 1049, 1130, 1251, 1698, 2059})
_PRIVILEGE: Final = frozenset({1142, 1143, 1227, 1370, 1410})
_LOCKED: Final = frozenset({1205, 1213, 3572})
_TLS: Final = ("SSL", "certificate", "TLS")
_SERVER_ERROR: Final = 1000
"""Below are the operating system's numbers, from 2000 on the client's."""
_QUOTING: Final = frozenset({1062, 1064, 1292, 1366, 1525})
"""Server messages that quote the statement or a value."""


@contextmanager
def translated(settings: MysqlSettings, doing: str) -> Iterator[None]:
    """Everything the driver raises inside becomes one of our errors."""
    try:
        yield
    except pymysql.MySQLError as error:
        raise translate(error, settings, doing) from None  # the chain may quote values (I9)
    except OSError as error:  # a socket of the binary log's own reading
        raise _lost(f"{doing} on {_place(settings)} failed: {type(error).__name__}") from error


def translate(error: pymysql.MySQLError, settings: MysqlSettings, doing: str) -> TidegateError:
    """The driver's error by what one can do about it."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = f"error {code}" if code in _QUOTING else _message(error, settings)
    message = f"{doing} on {_place(settings)} failed: {text}"
    if code in _LOGIN:
        return ConfigError(
            "source.login",
            message,
            hint="check source.username, the password, source.database and the user's host part",
        )
    if code in _PRIVILEGE:
        return ConfigError(
            "source.privilege", message, hint="`tidegate validate` prints the GRANT that is missing"
        )
    if code in _LOCKED:
        return HeldError("source.locked", message, hint="another session holds the lock: try later")
    if any(word in text for word in _TLS):
        return ConfigError(
            "source.tls", message, hint="check source.sslmode and source.sslrootcert"
        )
    passing = isinstance(error, pymysql.OperationalError | pymysql.InterfaceError)
    if passing and not _SERVER_ERROR <= code < 2000:
        return _lost(message)
    return SetupError(
        "source.sql", f"{message} ({code})", hint="run `tidegate validate`; see the server's log"
    )


def _lost(message: str) -> RetriableError:
    return RetriableError(
        "source.unreachable",
        message,
        hint="is the server up and reachable from here? The next attempt goes on from here",
    )


def _message(error: pymysql.MySQLError, settings: MysqlSettings) -> str:
    text = " ".join(str(error.args[-1] if error.args else error).split())
    secret = settings.password.get_secret_value()
    return text.replace(secret, "***") if secret else text


def _place(settings: MysqlSettings) -> str:
    return f"{settings.host}:{settings.port}/{settings.database}"
