"""Reading the log for its transactions' ids alone: what had happened up to a place in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tidegate.connectors.mysql import events, gtid
from tidegate.connectors.mysql.connection import Connection, is_mariadb, named, query, variable
from tidegate.connectors.mysql.events import HEADER
from tidegate.connectors.mysql.gtid import Gtids
from tidegate.connectors.mysql.position import FIRST_OFFSET, current, file_number
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.wire import (
    HEARTBEAT_SECONDS,
    RECEIVE_BYTES,
    SILENCE_SECONDS,
    Wire,
    ended,
)

_LISTS = ("Gtid_list", "Previous_gtids")


def at_start(sql: Connection, name: str) -> Gtids:
    """What came before a file, as it says itself."""
    mariadb = is_mariadb(sql)
    for event in named(sql, f"SHOW BINLOG EVENTS IN '{name}' LIMIT 3"):
        if event["event_type"] in _LISTS:
            return gtid.parse(str(event["info"]), mariadb=mariadb)
    return gtid.parse("", mariadb=mariadb)


def gtids_at(settings: MysqlSettings, sql: Connection, name: str, offset: int) -> Gtids:
    """What lies before a place. MySQL has no function for it: the file is read up to there."""
    if is_mariadb(sql):
        ((text,),) = query(sql, "SELECT BINLOG_GTID_POS(%s, %s)", (name, offset))
        return gtid.parse(str(text or ""), mariadb=True)
    found = at_start(sql, name)
    for each in _ids(settings, sql, name, (file_number(name), offset)):
        found.add(each)
    return found


def ids_from(settings: MysqlSettings, sql: Connection, name: str) -> Iterator[Any]:
    """The ids of everything from the beginning of ``name`` to where the log ends now."""
    last, offset = current(sql)
    return _ids(settings, sql, name, (file_number(last), offset))


def _ids(
    settings: MysqlSettings, sql: Connection, name: str, until: tuple[int, int]
) -> Iterator[Any]:
    checksums = variable(sql, "binlog_checksum") == "CRC32"
    file, heard = file_number(name), time.monotonic()
    wire = Wire(settings)
    try:
        wire.start(name, FIRST_OFFSET, settings.other_server_id)
        while time.monotonic() - heard < SILENCE_SECONDS:
            parcel = wire.read(RECEIVE_BYTES, HEARTBEAT_SECONDS)
            for start, end in parcel.events:
                heard = time.monotonic()
                kind, body = parcel.data[start + 4], start + HEADER
                if kind == events.FORMAT:
                    checksums = events.checksummed(parcel.data[start:end])
                elif kind == events.ROTATE:
                    told = parcel.data[body : end - 4 if checksums else end]
                    file = file_number(events.rotate(told)[0])
                    continue
                ends_at = int.from_bytes(parcel.data[start + 13 : start + 17], "little")
                if (file, ends_at) > until:
                    return
                if kind in (events.GTID, events.MARIADB_GTID):
                    yield events.transaction(parcel.data, start, end, 0).gtid
                if (file, ends_at) == until:
                    return
    finally:
        wire.close()
    raise ended("the log was not sent up to the place that is asked for")
