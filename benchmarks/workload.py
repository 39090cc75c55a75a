"""The benchmark table and its changes: 10 columns, rows of about 200 bytes, 60/30/10.

A *rich* table has what is slow to take exactly besides: a wide decimal, arrays, an unconstrained
numeric, JSON, and a TOASTed text that updates do not send.
"""

from __future__ import annotations

from typing import Any, Final

CHANGES_PER_TRANSACTION: Final = 1_000
INSERTS, UPDATES, DELETES = 600, 300, 100  # of each transaction

_COLUMNS: Final = """
    id bigint PRIMARY KEY,
    customer_id integer NOT NULL,
    status text NOT NULL,
    amount numeric(12,2) NOT NULL,
    ratio double precision NOT NULL,
    active boolean NOT NULL,
    day date NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamp NOT NULL,
    note text NOT NULL
"""

_ROW: Final = """
    i, (i * 7919 %% 100000)::int, (ARRAY['new','paid','sent','done'])[1 + i %% 4],
    (i %% 1000000) / 100.0, i / 7.0, i %% 3 = 0, DATE '2026-01-01' + (i %% 365)::int,
    TIMESTAMPTZ '2026-01-01 00:00:00Z' + i * interval '1 second',
    TIMESTAMP '2026-01-01 00:00:00' + i * interval '1 second',
    repeat(md5(i::text), 3)
"""


_RICH_COLUMNS: Final = """,
    price numeric(38,10) NOT NULL,
    weight numeric NOT NULL,
    tags text[] NOT NULL,
    counts integer[] NOT NULL,
    extra jsonb NOT NULL,
    body text
"""
_RICH_ROW: Final = """,
    i * 1.0000000007, i / 3.0, ARRAY['t' || i %% 10, 'a b', NULL], ARRAY[i %% 5, i %% 7, 1]::int[],
    jsonb_build_object('n', i, 'tags', 'x'),
    CASE WHEN i %% 100 = 0 THEN (SELECT string_agg(md5((i * j)::text), '')
                                 FROM generate_series(1, 80) j) END
"""
RICH: Final = "rich"
"""What the name of a rich table begins with."""


def create(connection: Any, table: str, rows: int) -> None:
    """A table with keys 1…rows."""
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    columns = _COLUMNS + (_RICH_COLUMNS if table.startswith(RICH) else "")
    connection.execute(f"CREATE TABLE {table} ({columns})")
    fill(connection, table, 1, rows)
    connection.execute(f"VACUUM ANALYZE {table}")


def fill(connection: Any, table: str, first: int, last: int) -> None:
    if last >= first:
        row = _ROW + (_RICH_ROW if table.startswith(RICH) else "")
        connection.execute(
            f"INSERT INTO {table} SELECT {row.replace('%%', '%')}"
            f" FROM generate_series({first}::bigint, {last}::bigint) AS i"
        )


def change(connection: Any, table: str, changes: int, *, scattered: bool = False) -> None:
    """Write ``changes`` changes in transactions of a thousand.

    Inserts take new keys. Updates and deletes go to recent keys, or, with ``scattered``, to keys
    all over the table.
    """
    top = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
    for done in range(0, changes, CHANGES_PER_TRANSACTION):
        share = min(CHANGES_PER_TRANSACTION, changes - done) / CHANGES_PER_TRANSACTION
        inserts, updates, deletes = (int(n * share) for n in (INSERTS, UPDATES, DELETES))
        with connection.transaction():
            fill(connection, table, top + 1, top + inserts)
            top += inserts
            touched = _keys(top, updates + deletes, scattered, seed=done)
            connection.execute(
                f"UPDATE {table} SET status = 'changed', amount = amount + 1,"
                f" updated_at = updated_at + interval '1 day' WHERE id = ANY(%s)",
                [touched[:updates]],
            )
            connection.execute(f"DELETE FROM {table} WHERE id = ANY(%s)", [touched[updates:]])


def _keys(top: int, count: int, scattered: bool, seed: int) -> list[int]:
    if not scattered:
        return list(range(max(1, top - count + 1), top + 1))
    step = max(1, top // max(1, count))
    return [1 + (seed * 7 + n * step) % top for n in range(count)]
