"""A client of the soak: transfers as pgbench makes them, and what is hard for a change feed."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

import psycopg

TABLES: Final = ("accounts", "tellers", "entries", "documents")
ACCOUNTS, TELLERS, DOCUMENTS = 20_000, 500, 2_000
PAUSE_SECONDS: Final = 0.01

SCHEMA: Final = f"""
CREATE TABLE accounts (id int PRIMARY KEY, balance numeric(14,2) NOT NULL, changed timestamptz);
CREATE TABLE tellers (
  region text, no int, balance numeric(14,2), tags text[], PRIMARY KEY (region, no));
CREATE TABLE entries (id bigserial PRIMARY KEY, account int, amount numeric(14,2), at timestamptz);
CREATE TABLE documents (id int PRIMARY KEY, version int NOT NULL, body text, meta jsonb);
INSERT INTO accounts SELECT i, 0, now() FROM generate_series(1, {ACCOUNTS}) i;
INSERT INTO tellers SELECT 'r' || i % 7, i, 0, ARRAY['a', NULL, i::text]
  FROM generate_series(1, {TELLERS}) i;
INSERT INTO documents SELECT i, 0, (SELECT string_agg(md5((i * j)::text), '')
  FROM generate_series(1, 150) j), '{{"n": 1.10}}' FROM generate_series(1, {DOCUMENTS}) i;
"""

Step = Callable[[random.Random], str]


def transfer(dice: random.Random) -> str:
    one, amount = dice.randint(1, ACCOUNTS), dice.randint(-50000, 50000) / 100
    return (
        f"UPDATE accounts SET balance = balance + {amount}, changed = now() WHERE id = {one};"
        f"UPDATE tellers SET balance = balance + {amount} WHERE no = {dice.randint(1, TELLERS)};"
        f"INSERT INTO entries (account, amount, at) VALUES ({one}, {amount}, now())"
    )


def delete(dice: random.Random) -> str:
    recent = "(SELECT max(id) - 3000 FROM entries)"
    return f"DELETE FROM entries WHERE id % 97 = {dice.randint(0, 96)} AND id > {recent}"


def touch_document(dice: random.Random) -> str:
    """The long body is not sent."""
    some = dice.randint(0, 499)
    return f"UPDATE documents SET version = version + 1 WHERE id % 500 = {some}"


def rewrite_document(dice: random.Random) -> str:
    body = f"repeat(md5(random()::text), {dice.randint(1, 300)})"
    return f"UPDATE documents SET body = {body} WHERE id = {dice.randint(1, DOCUMENTS)}"


def move(dice: random.Random) -> str:
    """To another key and, sooner or later, back."""
    far = dice.choice((0, 100_000))
    step = 100_000 if far == 0 else -100_000
    return f"UPDATE accounts SET id = id + {step} WHERE id = {far + dice.randint(1, ACCOUNTS)}"


def reinsert(dice: random.Random) -> str:
    no = dice.randint(1, TELLERS)
    return (
        f"DELETE FROM tellers WHERE no = {no};"
        f"INSERT INTO tellers VALUES ('r{no % 7}', {no}, 0, '{{}}')"
    )


def undone(dice: random.Random) -> str:
    return f"BEGIN; DELETE FROM documents WHERE id = {dice.randint(1, DOCUMENTS)}; ROLLBACK"


def truncate(dice: random.Random) -> str:
    return "TRUNCATE entries"


STEPS: Final[dict[Step, float]] = {
    transfer: 60,
    delete: 6,
    touch_document: 12,
    rewrite_document: 4,
    move: 5,
    reinsert: 5,
    undone: 5,
    truncate: 0.02,
}
"""How often each is taken, relative to the others."""


class Writer(threading.Thread):
    """One connection, one transaction at a time, until told to stop."""

    def __init__(self, dsn: str, seed: int, stop: threading.Event) -> None:
        super().__init__(name=f"writer {seed}")
        self._dsn = dsn
        self._dice = random.Random(seed)
        self._halt = stop
        self.transactions: Counter[str] = Counter()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                while not self._halt.wait(self._dice.expovariate(1 / PAUSE_SECONDS)):
                    self._step(connection)
        except psycopg.Error as error:
            self.error = error

    def _step(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        step = self._dice.choices(list(STEPS), list(STEPS.values()))[0]
        try:
            connection.execute(step(self._dice).encode())
            self.transactions[step.__name__] += 1
        except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
            self.transactions["refused"] += 1
