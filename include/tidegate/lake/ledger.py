"""A small control table: few columns, short rows, many writers, strict order.

The gate journal, the schema history, the reports, the dead letters and the audit trail are ledgers.
Rows carry ``seq``, the number of the row since the ledger began; an append lands only on the state
it was decided on, so two writers never give the same number. ``rewrite`` folds the files into one
and expires the past.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tidegate.errors import FatalError, RetriableError
from tidegate.lake import commits
from tidegate.lake.catalog import ensure_namespace, load
from tidegate.lake.expiry import expire
from tidegate.lake.positions import ancestors, summary
from tidegate.names import FORMAT_PROPERTY, PROPERTY_PREFIX, STORED_FORMAT

CONTROL_PROPERTIES: Final[dict[str, str]] = {
    "format-version": "2",  # PyIceberg writes no format-3 metadata
    FORMAT_PROPERTY: STORED_FORMAT,
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    "commit.retry.num-retries": "0",  # whoever opens it with plain PyIceberg is strict too
    # A one-row append adds one manifest; merged early, or every read opens hundreds.
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "16",
}
_SEQ_PROPERTY: Final = f"{PROPERTY_PREFIX}seq"
READ_GRACE: Final = timedelta(minutes=2)
"""Snapshots this young stay after a rewrite, so that a reader in mid-scan keeps its files."""


Carry = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]]
"""Rows that are dropped in, the row that takes their place out."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows read from one snapshot."""

    head: int | None
    rows: tuple[dict[str, Any], ...]


class Ledger:
    """One control table. Instances are cheap and hold no rows."""

    def __init__(
        self,
        catalog: Catalog,
        identifier: tuple[str, str],
        schema: Schema,
        properties: Mapping[str, str] = CONTROL_PROPERTIES,
    ) -> None:
        self._catalog = catalog
        self._properties = properties
        self.identifier = identifier
        self._schema = schema
        self._arrow = schema_to_pyarrow(schema, include_field_ids=False)

    def table(self) -> Table | None:
        table = load(self._catalog, self.identifier)
        if table is not None:
            check_format(table)
        return table

    def open(self) -> Table:
        """The table, created on first use; two processes may do so at once."""
        table = self.table()
        if table is not None:
            return self._grown(table)
        ensure_namespace(self._catalog, self.identifier[0])
        try:
            return self._catalog.create_table(
                self.identifier, self._schema, properties=dict(self._properties)
            )
        except TableAlreadyExistsError:
            return self._catalog.load_table(self.identifier)

    def _grown(self, table: Table) -> Table:
        """With the columns that came since an older release made it; all of them are optional."""
        while {field.name for field in self._schema.fields} - set(table.schema().column_names):
            try:
                with table.update_schema() as update:
                    update.union_by_name(self._schema)
            except CommitFailedException:
                table.refresh()  # another writer was first, with the same columns or with rows
        return table

    def read(
        self,
        after: int = 0,
        table: Table | None = None,
        fields: tuple[str, ...] = ("*",),
        where: str | None = None,
    ) -> Page:
        """Rows with ``seq`` above ``after`` that ``where`` lets through, in order."""
        condition = f"seq > {after}" + (f" and {where}" if where else "")
        loaded = table if table is not None else self.table()
        if loaded is None or commits.head_id(loaded) is None:
            return Page(None, ())
        try:
            rows = loaded.scan(condition, fields).to_arrow().to_pylist()
        except FileNotFoundError:
            # A rewrite expired the files of this snapshot in mid-scan: the newest has them all.
            loaded.refresh()
            rows = loaded.scan(condition, fields).to_arrow().to_pylist()
        rows.sort(key=lambda row: int(row["seq"]))
        return Page(commits.head_id(loaded), tuple(rows))

    def append(self, table: Table, rows: Sequence[Mapping[str, Any]], head: int | None) -> int:
        """One snapshot with ``rows`` on exactly ``head``, or ``lake.moved``."""
        files = commits.write_files(table, self._rows(rows))
        try:
            return commits.append_files(table, files, _last(rows), head)
        except RetriableError as error:
            commits.discard_after(error, table, files)
            raise

    def add(self, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Append ``rows`` as the newest, whoever else writes meanwhile; the table they landed on.
        They are numbered here."""
        while True:
            table = self.open()
            first = self.last_seq(table) + 1
            numbered = [{**row, "seq": seq} for seq, row in enumerate(rows, start=first)]
            try:
                self.append(table, numbered, commits.head_id(table))
                return table
            except RetriableError as error:
                if error.code != commits.MOVED:
                    raise

    def fold_if_due(
        self, table: Table, *, files: int, kept: int, carry: Carry | None = None
    ) -> None:
        """From ``files`` files on, one file with the newest ``kept`` rows takes their place;
        ``carry`` makes one row of those that go."""
        if self.file_count(table) < files:
            return
        head = commits.head_id(table)
        known = self.read(table=table).rows
        rows = known[-kept:]
        if head is None or not rows:
            return
        gone = known[:-kept]
        if carry is not None and gone:
            rows = ({**carry(gone), "seq": gone[-1]["seq"]}, *rows)
        try:
            self.rewrite(table, rows, head)
        except RetriableError as error:
            if error.code != commits.MOVED:
                raise  # else another writer is at it right now; the next one folds

    def rewrite(self, table: Table, rows: Sequence[Mapping[str, Any]], head: int) -> int:
        """One file with ``rows`` takes the place of all others; the past is expired."""
        self._grown(table)
        old: list[DataFile] = [task.file for task in table.scan().plan_files()]
        new = commits.write_files(table, self._rows(rows)) if rows else []
        try:
            snapshot = commits.replace_files(table, old, new, _last(rows), head)
        except RetriableError as error:
            commits.discard_after(error, table, new)
            raise
        expire(table, before=datetime.now(UTC) - READ_GRACE)
        return snapshot

    def file_count(self, table: Table) -> int:
        """Data files of the current snapshot, from its summary."""
        snapshot = table.current_snapshot()
        if snapshot is None or snapshot.summary is None:
            return 0
        return int(snapshot.summary.additional_properties.get("total-data-files", "0"))

    def last_seq(self, table: Table) -> int:
        """The newest row's number, from the snapshots' summaries; 0 if there is no row."""
        for snapshot in ancestors(table.metadata):
            found = summary(snapshot).get(_SEQ_PROPERTY)
            if found is not None:
                return int(found)
        return 0

    def drop(self) -> bool:
        return drop(self._catalog, self.identifier)

    def _rows(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist([dict(row) for row in rows], schema=self._arrow)


def _last(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {_SEQ_PROPERTY: str(max((int(row["seq"]) for row in rows), default=0))}


def check_format(table: Table) -> None:
    """Refuse what a newer release wrote instead of misreading it."""
    found = table.properties.get(FORMAT_PROPERTY, STORED_FORMAT)
    if found != STORED_FORMAT:
        raise FatalError(
            "lake.format_unknown",
            f"{'.'.join(table.name())} has stored format {found}, this release reads"
            f" {STORED_FORMAT}",
            hint="use the Tidegate release that wrote it, or a newer one",
        )


def drop(catalog: Catalog, identifier: tuple[str, str]) -> bool:
    """Drop a control table with its files; False if there is none."""
    if load(catalog, identifier) is None:
        return False
    catalog.purge_table(identifier)
    return True
