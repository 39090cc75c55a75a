"""One capture of a pipeline at a time.

No slot admits one reader only, so a lock of the server does, for as long as its connection lives.
Two readers would take the same number among the replicas, and end each other's stream.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from typing import Final

import pymysql

from tidegate.connectors.mysql.connection import Connection, query
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.errors import RetriableError

SILENCE_SECONDS: Final = 600
"""The server gives the lock of a machine that is gone to another so long after its last word."""
RENEW_SECONDS: Final = 60.0


class Alone:
    """Holds the lock on ``sql``; RetriableError if another capture has it."""

    def __init__(self, sql: Connection, settings: MysqlSettings) -> None:
        self._sql = sql
        self._renewed = time.monotonic()
        query(sql, f"SET SESSION wait_timeout = {SILENCE_SECONDS}")
        self._name = f"tidegate_{hashlib.sha256(settings.slot.encode()).hexdigest()[:32]}"
        if query(sql, "SELECT GET_LOCK(%s, 0)", (self._name,))[0][0] != 1:
            holder = query(sql, "SELECT IS_USED_LOCK(%s)", (self._name,))[0][0]
            raise RetriableError(
                "capture.slot_active",
                "another capture of this pipeline follows the binary log (connection"
                f" {holder or 'gone meanwhile'})",
                hint="only one capture runs per pipeline: wait for the other one, or end it (KILL"
                " with that number at the server)",
            )

    def release(self) -> None:
        """Let the next one in. The end of the connection does that too, once the server sees it:
        who comes back at once would find the lock taken."""
        with contextlib.suppress(pymysql.err.Error):  # a lost connection holds no lock
            query(self._sql, "DO RELEASE_LOCK(%s)", (self._name,))

    def renew(self) -> None:
        """Tell the server that we live; to be called often."""
        if time.monotonic() - self._renewed >= RENEW_SECONDS:
            query(self._sql, "DO 0")
            self._renewed = time.monotonic()
