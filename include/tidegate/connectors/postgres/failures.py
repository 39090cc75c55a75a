"""PostgreSQL's errors in our words: what to retry, what to fix, never a password (I9)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.errors import ConfigError, HeldError, RetriableError, SetupError, TidegateError

_PASSING: Final = ("08", "53", "57P", "58")  # connection, resources, shutdown, system
_AUTHENTICATION: Final = ("28000", "28P01")
_PRIVILEGE: Final = "42501"
_NO_DATABASE: Final = "3D000"
_LOCK_NOT_AVAILABLE: Final = "55P03"
_IN_USE: Final = "55006"
_CONFIGURATION_LIMIT: Final = "53400"  # e.g. all replication slots in use
_PROGRAM_LIMIT: Final = "54"  # a statement of ours that is too much for the server

_WRONG_LOGIN: Final = ("password authentication failed", "no pg_hba.conf entry", "role ")
_WRONG_TLS: Final = ("certificate", "SSL", "root.crt", "sslrootcert")
_WRONG_DATABASE: Final = "does not exist"


@contextmanager
def translated(settings: PostgresSettings, doing: str) -> Iterator[None]:
    """Everything the driver raises inside becomes one of our errors."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, settings, doing) from None  # the chain may quote values (I9)


def translate(error: psycopg.Error, settings: PostgresSettings, doing: str) -> TidegateError:
    """The driver's error by what one can do about it."""
    text = _message(error, settings)
    code = error.sqlstate
    message = f"{doing} on {_place(settings)} failed: {text}"
    if code is None:
        return _without_code(text, message, settings)
    if code == _LOCK_NOT_AVAILABLE:
        return HeldError("source.locked", message, hint="another session holds the lock: try later")
    if code == _IN_USE:
        return HeldError(
            "source.in_use", message, hint="end the other session that uses it, or wait for it"
        )
    if code == _PRIVILEGE:
        return ConfigError(
            "source.privilege", message, hint="`tidegate validate` prints the GRANT that is missing"
        )
    if code in _AUTHENTICATION or code == _NO_DATABASE:
        return _login(message, settings)
    if code == _CONFIGURATION_LIMIT:
        return SetupError(
            "source.limit",
            message,
            hint="raise max_replication_slots / max_wal_senders and restart the source",
        )
    if not code.startswith(_PROGRAM_LIMIT) and (
        code.startswith(_PASSING) or isinstance(error, psycopg.OperationalError)
    ):
        return _lost(message)
    return SetupError(
        "source.sql", f"{message} ({code})", hint="run `tidegate validate`; see the server's log"
    )


def _without_code(text: str, message: str, settings: PostgresSettings) -> TidegateError:
    """libpq's own failures, mostly while connecting, have words but no code."""
    if any(word in text for word in _WRONG_LOGIN) or (
        "database" in text and _WRONG_DATABASE in text
    ):
        return _login(message, settings)
    if any(word in text for word in _WRONG_TLS) and "closed" not in text:
        return ConfigError(
            "source.tls", message, hint="check source.sslmode and source.sslrootcert"
        )
    return _lost(message)


def _login(message: str, settings: PostgresSettings) -> ConfigError:
    return ConfigError(
        "source.login",
        message,
        hint="check source.username, the password, source.database and the server's pg_hba.conf"
        f" (user {settings.username}, also for replication connections)",
    )


def _lost(message: str) -> RetriableError:
    return RetriableError(
        "source.unreachable",
        message,
        hint="is the server up and reachable from here? The next attempt goes on from here",
    )


def _message(error: psycopg.Error, settings: PostgresSettings) -> str:
    """The primary message only: DETAIL and CONTEXT may quote rows (I9)."""
    primary = error.diag.message_primary or str(error)
    text = " ".join(primary.split())
    secret = settings.password.get_secret_value()
    return text.replace(secret, "***") if secret else text


def _place(settings: PostgresSettings) -> str:
    return f"{settings.host}:{settings.port}/{settings.database}"
