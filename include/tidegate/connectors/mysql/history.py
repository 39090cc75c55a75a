"""Does the server's log continue ours, and where? What is told apart: purged, reset, taken over.

A server that took over has files of its own. Where both write global transaction ids, its log is
joined in the newest file whose beginning holds nothing that was not captured, and what it repeats
is left out by its ids: a new term of the same epoch, without a gap and so without a sweep
(docs/decisions/2026-11-17-failover-is-a-term.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.connectors.mysql import gtid
from tidegate.connectors.mysql.anchor import Anchor
from tidegate.connectors.mysql.connection import Connection, is_mariadb, query, variable
from tidegate.connectors.mysql.gtid import Gtids, MariadbGtids
from tidegate.connectors.mysql.position import (
    FIRST_OFFSET,
    LogFile,
    Place,
    files,
    server_identity,
    way_back,
)
from tidegate.connectors.mysql.settings import MysqlSettings
from tidegate.connectors.mysql.skim import at_start, gtids_at, ids_from
from tidegate.connectors.mysql.wire import first_event_seconds
from tidegate.envelope.position import Position
from tidegate.errors import FatalError


@dataclass(frozen=True, slots=True)
class Joint:
    """Where the server's log goes on behind a position of ours."""

    place: Place
    name: str  # of the file
    anchor: Anchor

    @property
    def term(self) -> int:
        return self.place.term


def find(settings: MysqlSettings, sql: Connection, after: Position) -> Joint:
    """FatalError if the server's log does not continue ours."""
    anchor, place = Anchor.of(after), Place.of(after)
    present, server = files(sql), server_identity(sql)
    if server != anchor.server:
        return _taken_over(settings, sql, anchor, place, server, present)
    file = _same_file(place, present, settings.tables)
    began = next((log for log in present if log.number == anchor.file), None)
    if began is not None and born(settings, began.name) != anchor.born:
        raise _reset(settings, f"binary log file {anchor.file} is not the one that was joined")
    known = anchor.known
    if known is None and uses_gtids(sql):  # noted before they were, or before they were on
        known = gtids_at(settings, sql, file.name, place.offset)
    elif known is not None:
        if not uses_gtids(sql):
            known = None
        elif not executed(sql).covers(known) or not known.covers(at_start(sql, file.name)):
            raise _reset(settings, f"binary log file {file.number} holds other transactions")
    return Joint(place, file.name, anchor.at(known))


def term(settings: MysqlSettings, sql: Connection, head: Position) -> int:
    """Of what the server's log holds now, as seen from ``head``."""
    if server_identity(sql) == Anchor.of(head).server:
        return Place.of(head).term
    return find(settings, sql, head).term


def uses_gtids(sql: Connection) -> bool:
    """MariaDB always; MySQL where every transaction has one."""
    return is_mariadb(sql) or (variable(sql, "gtid_mode") or "").upper() == "ON"


def executed(sql: Connection) -> Gtids:
    """What the server's log has, or had before it was purged."""
    return _set(sql, "gtid_binlog_pos" if is_mariadb(sql) else "gtid_executed")


def born(settings: MysqlSettings, name: str) -> int:
    return first_event_seconds(settings, name, FIRST_OFFSET)


def _same_file(place: Place, present: list[LogFile], tables: tuple[str, ...]) -> LogFile:
    numbers = {log.number: log for log in present}
    file = numbers.get(place.file)
    newest = max(numbers, default=0)
    if place.file > newest or (file is not None and file.size < place.offset):
        raise FatalError(
            "capture.log_reset",
            f"the binary log ends before the place the change log has reached (file {place.file},"
            f" offset {place.offset}): it was reset, or restored from a backup",
            hint=way_back(tables),
        )
    if file is None:
        raise _purged(tables, f"binary log file {place.file}; its oldest is {min(numbers)}")
    return file


def _taken_over(
    settings: MysqlSettings,
    sql: Connection,
    anchor: Anchor,
    place: Place,
    server: str,
    present: list[LogFile],
) -> Joint:
    known = anchor.known
    if known is None or anchor.is_mariadb != is_mariadb(sql) or not uses_gtids(sql):
        raise FatalError(
            "source.other_system",
            f"the source is server {server}, but the change log was taken from {anchor.server}"
            " (a failover, or another address): without GTIDs on both, file names and offsets mean"
            " nothing there",
            hint=way_back(settings.tables),
        )
    if not executed(sql).covers(known):
        raise _diverged(settings, anchor, server, "its log lacks transactions that were captured")
    file = next((log for log in reversed(present) if known.covers(at_start(sql, log.name))), None)
    if file is None or not known.covers(_unlogged(sql)):
        raise _purged(
            settings.tables,
            f"what server {server}, which took over, has executed since (or it does not log what it"
            " replicates)",
        )
    if isinstance(known, MariadbGtids) and not _repeats(settings, sql, file, known):
        raise _diverged(
            settings,
            anchor,
            server,
            "its log lacks the last that was captured (log_slave_updates off?)",
        )
    joined = Place(place.term + 1, file.number, FIRST_OFFSET)
    text = str(known)
    began = Anchor(server, file.number, born(settings, file.name), gtids=text, joined=text)
    return Joint(joined, file.name, began)


def _unlogged(sql: Connection) -> Gtids:
    """Executed, but in none of MySQL's files; MariaDB counts what it logs only."""
    return MariadbGtids() if is_mariadb(sql) else _set(sql, "gtid_purged")


def _set(sql: Connection, name: str) -> Gtids:
    """Whole: SHOW VARIABLES would cut a long one off."""
    ((text,),) = query(sql, f"SELECT @@GLOBAL.{name}")
    return gtid.parse(str(text or ""), mariadb=is_mariadb(sql))


def _repeats(settings: MysqlSettings, sql: Connection, file: LogFile, known: MariadbGtids) -> bool:
    """Whether the last transaction of every domain is in that log, by the same server: a number
    alone may have been given twice."""
    start = at_start(sql, file.name)
    assert isinstance(start, MariadbGtids)
    wanted = {d: last for d, last in known.domains.items() if start.domains.get(d) != last}
    for domain, server, number in ids_from(settings, sql, file.name):
        if not wanted:
            break
        if number < wanted.get(domain, (0, number + 1))[1]:
            continue
        if wanted.pop(domain) != (server, number):
            return False
    return not wanted


def _reset(settings: MysqlSettings, what: str) -> FatalError:
    return FatalError(
        "capture.log_reset", f"{what}: the log was reset", hint=way_back(settings.tables)
    )


def _purged(tables: tuple[str, ...], what: str) -> FatalError:
    return FatalError(
        "capture.log_purged",
        f"the server has purged what was not captured yet: {what}",
        hint=f"{way_back(tables)}. Keep files longer than captures are apart"
        " (expire_logs_days, binlog_expire_logs_seconds)",
    )


def _diverged(settings: MysqlSettings, anchor: Anchor, server: str, why: str) -> FatalError:
    return FatalError(
        "source.diverged",
        f"server {server} took over from {anchor.server}, but {why}: the lake may hold changes"
        " that the source lost",
        hint=way_back(settings.tables),
    )
