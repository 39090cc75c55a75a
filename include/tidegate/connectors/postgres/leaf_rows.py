"""What became of a table's rows where its files, or its partitions, are others than before.

VACUUM FULL, CLUSTER and SET TABLESPACE give a table another file and leave every row what it was;
TRUNCATE of a partition and ALTER … USING do too, and no row event tells of either. Told apart by

- the log: a TRUNCATE of the whole table, or a rewrite, by the transaction that gave the file;
- the columns: ALTER … TYPE writes its column's entry in the catalog anew, VACUUM FULL none;
- the rows: a copy keeps its row's ``xmin``. One that is older than the last look was there then, so
  nothing emptied the table since. (After ALTER TABLE every row is the ALTER's own.)

Where none of them shows that the rows are what they were, they count as others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import psycopg

from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.moments import Moment
from tidegate.connectors.postgres.row_versions import APART, younger_sql
from tidegate.connectors.postgres.witness import Witness
from tidegate.envelope.visible import HALF, NUMBERS
from tidegate.names import TableId
from tidegate.schema.table_facts import Leaf, TableFacts

_WAIT: Final = "2s"
"""A look may wait this long for a table's lock, and read its rows this long (I11)."""
_FILES_SQL: Final = """
SELECT c.oid::text, c.relfilenode::text, c.xmin::text::bigint, n.nspname, c.relname,
       ARRAY(SELECT DISTINCT a.xmin::text::bigint FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.oid AND a.attnum > 0)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY(%s::oid[])
"""


class Rows(Enum):
    """What a table's own rows say."""

    NONE = "none"
    OLD = "old"  # one of them was there at the last look
    YOUNG = "young"
    UNKNOWN = "unknown"  # locked, too many, or not ours to read


class _Verdict(Enum):
    SAME = "same"  # or others in the way that the log tells
    OTHERS = "others"
    LATER = "later"  # the log does not reach there yet


@dataclass(frozen=True, slots=True)
class _File:
    file: str
    xid: int  # of the transaction that gave it, or changed the table's entry later
    table: TableId
    columns: frozenset[int]  # transactions that wrote the columns' entries


@dataclass(frozen=True, slots=True)
class Ground:
    """What a look is compared with: the look before it, and the log between the two."""

    known: TableFacts
    now: Moment
    witness: Witness | None = None  # None: a cut, which lies where the log is drained to
    through: int = 0


def compared(connection: Connection, table: TableId, seen: TableFacts, on: Ground) -> TableFacts:
    """``seen`` with what became of the rows since ``on.known``."""
    if on.known.relation is None or on.known.relation != seen.relation:
        return seen
    return replace(seen, leaves=_Comparison(connection, table, seen, on).leaves())


class _Comparison:
    """One table's leaves against those of the look before."""

    def __init__(
        self, connection: Connection, table: TableId, seen: TableFacts, on: Ground
    ) -> None:
        self._connection = connection
        self._table = table
        self._seen = seen
        self._on = on
        self._told = seen.told_by is not None and seen.told_by == on.known.told_by
        self._files: dict[str, _File] = {}

    def leaves(self) -> dict[str, Leaf]:
        known = self._on.known.leaves
        moved = [n for n, leaf in self._seen.leaves.items() if _moved(leaf, known.get(n))]
        rows = self._connection.execute(_FILES_SQL, (moved,)).fetchall() if moved else []
        self._files = {
            oid: _File(file, xid, TableId(schema, name), frozenset(columns))
            for oid, file, xid, schema, name, columns in rows
        }
        return {
            number: self._followed(number, leaf, known[number])
            if number in known
            else self._came(number, leaf)
            for number, leaf in self._seen.leaves.items()
        }

    def _came(self, number: str, leaf: Leaf) -> Leaf:
        """A new one: what it had before was not sent."""
        file = None if leaf.made_empty else self._files.get(number)
        if file is None or self._rows(file, None) is not Rows.NONE:
            return leaf
        return replace(leaf, made_empty=True)

    def _followed(self, number: str, leaf: Leaf, old: Leaf) -> Leaf:
        leaf = replace(leaf, made_empty=old.made_empty, remade=old.remade)
        if not _moved(leaf, old):
            return leaf
        before, mark = old.traced or old.file, old.marked or self._on.known.mark
        verdict = self._verdict(number, before, mark)
        if verdict is _Verdict.LATER:
            return replace(leaf, traced=before, marked=mark)
        return leaf if verdict is _Verdict.SAME else replace(leaf, remade=leaf.file)

    def _verdict(self, number: str, before: str, mark: str | None) -> _Verdict:
        file, witness = self._files.get(number), self._on.witness
        if file is None or file.file != self._seen.leaves[number].file:
            return _Verdict.LATER  # it has changed again meanwhile
        if self._logged(number, before, file) or self._unaltered(file, mark):
            return _Verdict.SAME
        if witness is not None and not witness.covers(file.xid, self._on.through):
            return _Verdict.LATER
        rows = self._rows(file, mark)
        nothing_to_lose = rows is Rows.NONE and not self._seen.partitioned
        return _Verdict.SAME if rows is Rows.OLD or nothing_to_lose else _Verdict.OTHERS

    def _logged(self, number: str, before: str, file: _File) -> bool:
        """Whether the log tells all there is to tell of a new file."""
        witness = self._on.witness
        if witness is None:
            return False
        if witness.truncated(self._table, file.xid):
            return self._told or file.xid not in file.columns  # altered by the same transaction
        return self._told and witness.rewritten(number, before, file.file)

    def _unaltered(self, file: _File, mark: str | None) -> bool:
        """Whether no ``USING`` can be behind it. Of a partition that says nothing: nobody tells
        of its TRUNCATE."""
        if self._seen.partitioned:
            return False
        low = self._on.now.below(mark)
        return self._told or (low is not None and not any(_since(low, xid) for xid in file.columns))

    def _rows(self, file: _File, mark: str | None) -> Rows:
        return rows_of(self._connection, file.table, mark, self._on.now)


def _moved(leaf: Leaf, old: Leaf | None) -> bool:
    """Whether there is something to look at more closely."""
    return not leaf.made_empty if old is None else leaf.file != (old.traced or old.file)


def _since(mark: int, xid: int) -> bool:
    """Whether transaction ``xid`` was numbered at or after ``mark`` (numbers go round)."""
    return (xid - mark) % NUMBERS < HALF


def rows_of(connection: Connection, leaf: TableId, mark: str | None, now: Moment) -> Rows:
    """Look for a row that is older than ``mark``. Bounded, and without a trace in a transaction
    that is open already."""
    young = "true"
    low = now.below(mark)
    if low is not None and 0 <= now.end - low < APART:
        young = younger_sql(low, low + HALF)
    sql = (
        f"SELECT EXISTS (SELECT FROM ONLY {leaf.sql}),"
        f" EXISTS (SELECT FROM ONLY {leaf.sql} WHERE NOT {young})"
    )
    try:
        with connection.transaction(force_rollback=True):
            for limit in ("lock_timeout", "statement_timeout"):
                connection.execute(f"SET LOCAL {limit} = '{_WAIT}'".encode())
            any_row, old = connection.execute(sql.encode()).fetchone() or (True, False)
    except (
        psycopg.errors.LockNotAvailable,
        psycopg.errors.QueryCanceled,
        psycopg.errors.InsufficientPrivilege,
        psycopg.errors.UndefinedTable,
    ):
        return Rows.UNKNOWN  # doubt is for the caller to answer; capture goes on meanwhile
    if not any_row:
        return Rows.NONE
    return Rows.OLD if old else Rows.YOUNG
