"""A small database of every shape, a writer that never rests, and a record of what it did.

Triggers note every change in a table of their own, in the transaction that makes it: what the
change log must hold, event by event. One session's transactions commit in the order of their notes.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from tests.support.postgres import SourceDatabase

TABLES: Final = {
    "public.accounts": ("id",),
    "public.lines": ("region", "number"),
    "public.flags": ("id",),
    "public.prices": ("id",),
    "public.journal": ("id",),
}
"""Source tables and their keys."""

LAKE: Final[dict[str, Any]] = {
    "tables": {
        "public.lines": {"partition_by": ["region"]},
        "public.flags": {"soft_delete": True},
        "public.prices": {"write_mode": "history"},
        "public.journal": {"write_mode": "append"},
    },
}
"""The sink: upsert with TOAST and key changes, upsert with a composite key and truncates, soft
deletes, history, append."""

_DDL: Final = """
CREATE TABLE accounts (id bigint PRIMARY KEY, name text NOT NULL, balance numeric(14,4),
                       note text, seen timestamptz, tags text[]);
ALTER TABLE accounts ALTER note SET STORAGE EXTERNAL;
CREATE TABLE lines (region text, number int, amount numeric(10,2), doc jsonb,
                    PRIMARY KEY (region, number));
CREATE TABLE flags (id int PRIMARY KEY, label varchar(40), score double precision, day date);
CREATE TABLE prices (id int PRIMARY KEY, price numeric(9,2), since timestamp);
CREATE TABLE journal (id int PRIMARY KEY, body text, done boolean NOT NULL);

INSERT INTO accounts SELECT i, 'account ' || i, i * 1.0001,
       CASE WHEN i % 25 = 0 THEN repeat(md5(i::text), 90) END,
       timestamptz '2024-01-01 00:00:00+00' + i * interval '1 hour 1 microsecond',
       ARRAY['t' || i % 3, NULL, '{"x,y"}'] FROM generate_series(1, 5000) i;
INSERT INTO lines SELECT (ARRAY['north','south','east','west'])[i % 4 + 1], i, i / 7.0,
       jsonb_build_object('n', i) FROM generate_series(1, 400) i;
INSERT INTO flags SELECT i, 'flag ' || i, i / 3.0, date '2024-02-27' + i
  FROM generate_series(1, 300) i;
INSERT INTO prices SELECT i, i * 1.25, timestamp '2024-03-31 02:30:00' + i * interval '1 second'
  FROM generate_series(1, 300) i;
INSERT INTO journal SELECT i, 'entry ' || i, i % 2 = 0 FROM generate_series(1, 300) i;

CREATE SCHEMA noted;
CREATE TABLE noted.events (
  seq bigserial PRIMARY KEY, tbl text, op text, key text[],
  xid bigint DEFAULT pg_current_xact_id()::text::bigint & 4294967295,
  pid int DEFAULT pg_backend_pid()
);
CREATE FUNCTION noted.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  subject jsonb;
BEGIN
  IF TG_OP = 'INSERT' THEN subject := to_jsonb(NEW);
  ELSIF TG_OP <> 'TRUNCATE' THEN subject := to_jsonb(OLD);
  END IF;
  INSERT INTO noted.events (tbl, op, key) VALUES (
    TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME,
    CASE TG_OP WHEN 'INSERT' THEN 'c' WHEN 'UPDATE' THEN 'u' WHEN 'DELETE' THEN 'd' ELSE 't' END,
    CASE WHEN TG_OP <> 'TRUNCATE' THEN
      ARRAY(SELECT subject ->> k.name FROM unnest(TG_ARGV) WITH ORDINALITY k(name, n) ORDER BY n)
    END);
  RETURN NULL;
END $$;
"""


def create(db: SourceDatabase) -> None:
    """The tables with their first rows."""
    db.sql(_DDL)


def start_notes(db: SourceDatabase) -> None:
    """Note every change from here on; call it before anyone writes and before deploy."""
    for table, key in TABLES.items():
        arguments = ", ".join(f"'{column}'" for column in key)
        db.sql(
            f"CREATE TRIGGER noted_rows AFTER INSERT OR UPDATE OR DELETE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION noted.note({arguments})",
            f"CREATE TRIGGER noted_truncates AFTER TRUNCATE ON {table}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION noted.note({arguments})",
        )


@dataclass(frozen=True, slots=True)
class Note:
    """One change."""

    op: str
    key: list[str] | None
    xid: int
    session: int


def noted(db: SourceDatabase, table: str) -> list[Note]:
    """Every change to ``table`` that was committed, in the order in which they were made."""
    return [
        Note(*row)
        for row in db.rows(
            f"SELECT op, key, xid, pid FROM noted.events WHERE tbl = '{table}' ORDER BY seq"
        )
    ]


class _Counting:
    """A connection that knows whether its statements changed anything."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.changed = False

    def execute(self, statement: str, values: Any = None) -> None:
        cursor = self._connection.execute(statement, values)
        self.changed |= cursor.rowcount != 0  # of a TRUNCATE it is unknown


def _changed(step: Callable[[Any], str], connection: Any) -> str | None:
    """The table that ``step`` changed. One that finds no row leaves no trace in the log."""
    counting = _Counting(connection)
    table = step(counting)
    return table if counting.changed else None


class Writer:
    """Random transactions, committed one after another from a thread, until stopped."""

    PACE = 0.02
    """Seconds between transactions: active all the time, without a backlog that takes minutes."""
    OUTAGE = 60.0
    """Seconds a restarting server is waited for."""

    def __init__(self, db: SourceDatabase, seed: int) -> None:
        self._db = db
        self._random = random.Random(seed)
        self._next = 1_000_000
        self._turn = threading.Lock()
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._alive = time.monotonic()
        self.committed = 0
        self.big_rows_stay = False
        """Whether rows with TOASTed values keep their key: a killed sweep then always resumes."""
        self.touched = dict.fromkeys(TABLES, 0)
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> Writer:
        self._thread.start()
        return self

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Nothing is open and nothing is committed for the length of the block."""
        with self._turn:
            self.check()
            yield

    def check(self) -> None:
        if self._failure is not None:
            raise AssertionError("the writer failed") from self._failure

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.check()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._connected()
                except psycopg.OperationalError:
                    if time.monotonic() - self._alive > self.OUTAGE:
                        raise
                    self._stop.wait(0.1)
        except BaseException as error:  # noqa: BLE001 - raised by check() in the test's thread
            self._failure = error

    def _connected(self) -> None:
        """Transactions over one connection. One whose answer is lost is noted, or it is not."""
        with self._db.connect() as connection:
            connection.execute("SET lock_timeout = '200ms'")
            while not self._stop.is_set():
                with self._turn:
                    self._transaction(connection)
                    self._alive = time.monotonic()
                self._stop.wait(self.PACE)

    def _transaction(self, connection: Any) -> None:
        """Some statements; one in ten is rolled back, and a table that is locked is left alone."""
        steps = self._random.choices(
            (self._accounts, self._keys, self._lines, self._flags, self._prices, self._journal),
            weights=(6, 2, 4, 3, 3, 3),
            k=self._random.randint(1, 4),
        )
        kept = self._random.random() >= 0.1
        try:
            with connection.transaction(force_rollback=not kept):
                touched = [table for step in steps if (table := _changed(step, connection))]
        except psycopg.errors.LockNotAvailable:
            return
        if kept:
            self.committed += 1
            for table in touched:
                self.touched[table] += 1

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _some(self, top: int) -> int:
        """An old row, or one of the newest."""
        if self._random.random() < 0.3 and self._next > 1_000_000:
            return self._random.randint(max(1_000_001, self._next - 200), self._next)
        return self._random.randint(1, top)

    def _accounts(self, connection: Any) -> str:
        dice, key = self._random.random(), self._some(5000)
        if dice < 0.4:  # leaves the out-of-line note unsent
            connection.execute(
                "UPDATE accounts SET balance = balance + %s, seen = clock_timestamp()"
                " WHERE id BETWEEN %s AND %s",
                (self._random.randint(-99, 99), key, key + self._random.randint(0, 30)),
            )
        elif dice < 0.6:
            connection.execute(
                "UPDATE accounts SET note = repeat(md5(%s), 90), tags = tags || %s WHERE id = %s",
                (str(key), [f"x{key}"], key),
            )
        elif dice < 0.75:
            connection.execute("DELETE FROM accounts WHERE id = %s", (key,))
        else:
            new = self._number()
            note = "n" * 5000 if new % 3 == 0 else None
            connection.execute(
                "INSERT INTO accounts VALUES (%s, %s, %s, %s, now(), '{}')",
                (new, f"account {new}", new * 0.5, note),
            )
        return "public.accounts"

    def _keys(self, connection: Any) -> str:
        """A key change, or two keys swapped in one transaction."""
        one, two = self._some(5000), self._some(5000)
        if self.big_rows_stay:
            connection.execute(
                "UPDATE accounts SET id = %s WHERE id = %s AND coalesce(length(note), 0) < 1000",
                (self._number(), one),
            )
        elif one == two or self._random.random() < 0.5:
            connection.execute("UPDATE accounts SET id = %s WHERE id = %s", (self._number(), one))
        else:
            aside = -self._number()
            for old, new in ((one, aside), (two, one), (aside, two)):
                connection.execute("UPDATE accounts SET id = %s WHERE id = %s", (new, old))
        return "public.accounts"

    def _lines(self, connection: Any) -> str:
        dice, region = (
            self._random.random(),
            self._random.choice(("north", "south", "east", "west")),
        )
        if dice < 0.03:
            connection.execute("TRUNCATE lines")
        elif dice < 0.4:
            new = self._number()
            connection.execute(
                "INSERT INTO lines VALUES (%s, %s, %s, %s)",
                (region, new, new / 100, f'{{"b": {new}, "a": [1, "ü"]}}'),
            )
        elif dice < 0.75:
            connection.execute(
                "UPDATE lines SET amount = -amount, doc = doc || '{\"seen\": true}'"
                " WHERE region = %s AND number %% 10 = %s",
                (region, self._random.randint(0, 9)),
            )
        elif dice < 0.9:  # a part of the key changes: another partition of the lake
            connection.execute(
                "UPDATE lines SET region = 'moved' WHERE region = %s AND number = %s",
                (region, self._some(400)),
            )
        else:
            connection.execute(
                "DELETE FROM lines WHERE region IN (%s, 'moved') AND number %% 50 = %s",
                (region, self._random.randint(0, 49)),
            )
        return "public.lines"

    def _flags(self, connection: Any) -> str:
        self._simple(connection, "flags", "score = score * 2, day = day + 1", "'new', 0.1, now()")
        return "public.flags"

    def _prices(self, connection: Any) -> str:
        self._simple(connection, "prices", "price = 9.99 - price", "0.01, localtimestamp")
        return "public.prices"

    def _journal(self, connection: Any) -> str:
        self._simple(connection, "journal", "done = NOT done", "NULL, false")
        return "public.journal"

    def _simple(self, connection: Any, table: str, change: str, values: str) -> None:
        dice, key = self._random.random(), self._some(300)
        if dice < 0.5:
            connection.execute(f"UPDATE {table} SET {change} WHERE id = %s", (key,))
        elif dice < 0.6:
            connection.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
        elif dice < 0.7:  # the same key again: deleted and back in one transaction or later
            connection.execute(
                f"INSERT INTO {table} VALUES (%s, {values}) ON CONFLICT DO NOTHING", (key,)
            )
        else:
            connection.execute(f"INSERT INTO {table} VALUES (%s, {values})", (self._number(),))
