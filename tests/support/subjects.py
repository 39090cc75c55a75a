"""PostgreSQL and MariaDB as subjects of ``tidegate.testing.connector``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql

from tests.support.mysql import MysqlDatabase
from tests.support.postgres import SourceDatabase
from tidegate.connectors.cut import Cut, SharedCut
from tidegate.connectors.mysql.settings import PINNED as MYSQL_PINNED
from tidegate.connectors.postgres.settings import PINNED as POSTGRES_PINNED
from tidegate.errors import Decision
from tidegate.names import TableId
from tidegate.testing.connector import Fault, Mistake, Subject, TypeSample
from tidegate.testing.mariadb_server import PASSWORD as MYSQL_PASSWORD
from tidegate.testing.mariadb_server import USER
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER
from tidegate.testing.server_user import free_port

_OBJECTS = """
SELECT 'table ' || c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relkind IN ('r', 'p')
UNION ALL SELECT 'schema ' || nspname FROM pg_namespace
WHERE nspname !~ '^pg_(toast_)?temp_'  -- made by whoever first has a temporary table
UNION ALL SELECT 'publication ' || pubname FROM pg_publication
UNION ALL SELECT 'member ' || p::text FROM pg_publication_tables p
UNION ALL SELECT 'trigger ' || evtname FROM pg_event_trigger
UNION ALL SELECT 'function ' || p.oid::regprocedure FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
UNION ALL SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE database = current_database()
"""


def _wrong(database: str) -> tuple[Mistake, ...]:
    return (
        Mistake("password", {"password": "wrong-secret-7"}, Decision.STOP),
        Mistake("user", {"username": "nobody_here"}, Decision.STOP),
        Mistake("database", {"database": f"{database}_gone"}, Decision.STOP),
        Mistake("port", {"port": free_port()}, Decision.RETRY),
    )


class PostgresSubject(Subject):
    source_type = "postgres"

    def __init__(self, db: SourceDatabase) -> None:
        self._db = db

    def table(self, name: str) -> TableId:
        return TableId("public", name)

    def source(self) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self._db.server.port,
            "database": self._db.name,
            "username": SUPERUSER,
            "password": PASSWORD,
        }

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(self._db.server.dsn(self._db.name))

    @contextmanager
    def reader(self, cut: Cut) -> Iterator[Any]:
        with closing(self.connect()) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert isinstance(cut, SharedCut)
            connection.execute(f"SET TRANSACTION SNAPSHOT '{cut.snapshot_name}'")
            for name, value in POSTGRES_PINNED.items():
                connection.execute(f"SET LOCAL {name} = '{value}'")
            yield connection

    def objects(self) -> set[str]:
        return {row[0] for row in self._db.rows(_OBJECTS)}

    def types(self) -> tuple[TypeSample, ...]:
        return (
            TypeSample("boolean", ("true", "false")),
            TypeSample("smallint", ("-32768", "32767")),
            TypeSample("bigint", ("-9223372036854775808", "9223372036854775807")),
            TypeSample("real", ("0.1", "'NaN'", "'-Infinity'", "3.4e38")),
            TypeSample("double precision", ("0.1", "5e-324", "'Infinity'", "-0.0")),
            TypeSample("numeric(20,6)", ("0.000001", "-99999999999999.999999")),
            TypeSample("numeric", ("'NaN'", "1e40", "0.00")),
            TypeSample("varchar(10)", ("''", "'é漢🌊'", "' x '")),
            TypeSample("char(5)", ("'a'", "''")),
            TypeSample("text", ("E'line\\nbreak\\ttab'", "'\\'", "'NULL'")),
            TypeSample("bytea", ("'\\x'", "'\\x00ff'")),
            TypeSample("date", ("'2024-02-29'", "'0044-03-15 BC'", "'infinity'")),
            TypeSample("timestamp", ("'2024-01-01 00:00:00.000001'", "'-infinity'")),
            TypeSample("timestamptz", ("'2024-06-30 23:59:59.999999+02'", "'1901-01-01 00:00+00'")),
            TypeSample("time", ("'24:00:00'", "'00:00:00.5'")),
            TypeSample("interval", ("'1 year 2 mons -3 days 04:05:06.789'",)),
            TypeSample("uuid", ("'00000000-0000-0000-0000-00000000000a'",)),
            TypeSample("jsonb", ("""'{"b": [1, 2.50, null], "a": "é"}'""",)),
            TypeSample("inet", ("'10.0.0.1'", "'10.0.0.0/8'")),
            TypeSample("integer[]", ("'{1,NULL,-3}'", "'{}'")),
            TypeSample("text[]", ("""'{"a,b","",NULL,"\\"q\\""}'""",)),
        )

    def mistakes(self) -> tuple[Mistake, ...]:
        return _wrong(self._db.name)

    def faults(self) -> tuple[Fault, ...]:
        return (
            Fault("connections ended", self._kill),
            Fault("server crashed", lambda: _restarted(self._db.server, signal.SIGQUIT)),
        )

    @contextmanager
    def _kill(self) -> Iterator[None]:
        self._db.rows(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        yield


class MysqlSubject(Subject):
    source_type = "mysql"

    def __init__(self, db: MysqlDatabase) -> None:
        self._db = db

    def table(self, name: str) -> TableId:
        return TableId(self._db.name, name)

    def source(self) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self._db.server.port,
            "database": self._db.name,
            "username": USER,
            "password": MYSQL_PASSWORD,
        }

    def connect(self) -> Any:
        pins = ", ".join(f"SESSION {name} = {value}" for name, value in MYSQL_PINNED.items())
        return pymysql.connect(
            host="127.0.0.1",
            port=self._db.server.port,
            user=USER,
            password=MYSQL_PASSWORD,
            database=self._db.name,
            charset="utf8mb4",
            init_command=f"SET {pins}",
        )

    @contextmanager
    def reader(self, cut: Cut) -> Iterator[Any]:
        with closing(self.connect()) as connection:
            yield connection

    def objects(self) -> set[str]:
        names = self._db.rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = database()"
            " UNION ALL SELECT trigger_name FROM information_schema.triggers"
            " UNION ALL SELECT event_name FROM information_schema.events"
        )
        return {str(row[0]) for row in names}

    def types(self) -> tuple[TypeSample, ...]:
        return (
            TypeSample("tinyint", ("-128", "127")),
            TypeSample("int unsigned", ("0", "4294967295")),
            TypeSample("bigint unsigned", ("18446744073709551615",)),
            TypeSample("decimal(20,6)", ("0.000001", "-99999999999999.999999")),
            TypeSample("double", ("0.1", "-1.5e300")),
            TypeSample("varchar(10)", ("''", "'é漢🌊'", "' x '")),
            TypeSample("char(5)", ("'a'", "''")),
            TypeSample("text", ("'line\nbreak'", "'\\'", "'NULL'")),
            TypeSample("varbinary(8)", ("x'00ff'", "''")),
            TypeSample("date", ("'2024-02-29'", "'9999-12-31'")),
            TypeSample("datetime(6)", ("'2024-01-01 00:00:00.000001'",)),
            TypeSample("timestamp(3) NULL", ("'2024-06-30 23:59:59.999'",)),
            TypeSample("time(2)", ("'-838:59:59'", "'00:00:00.5'")),
            TypeSample("year", ("2024", "1901")),
            TypeSample("bit(1)", ("b'1'", "b'0'")),
            TypeSample("bit(10)", ("b'1000000001'",)),
            TypeSample("enum('a','b''c')", ("'b''c'",)),
            TypeSample("set('x','y')", ("'x,y'", "''")),
            TypeSample("varchar(10) CHARACTER SET latin1", ("'é'",)),
        )

    def mistakes(self) -> tuple[Mistake, ...]:
        return _wrong(self._db.name)

    def faults(self) -> tuple[Fault, ...]:
        return (
            Fault("connections ended", self._kill),
            Fault("server crashed", lambda: _restarted(self._db.server, signal.SIGKILL)),
        )

    @contextmanager
    def _kill(self) -> Iterator[None]:
        connection = self._db.server.connect()
        with closing(connection), connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM information_schema.processlist"
                " WHERE id <> connection_id() AND user = %s",
                (USER,),
            )
            for (number,) in cursor.fetchall():
                cursor.execute(f"KILL CONNECTION {number}")
        yield


@contextmanager
def _restarted(server: Any, how: signal.Signals) -> Iterator[None]:
    server.restart(how)
    yield
