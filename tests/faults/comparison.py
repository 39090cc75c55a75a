"""Source and lake, row by row, read without any of the code that moved the rows.

The source by plain SELECT, the lake by a PyIceberg scan. Each write mode says in its own way what
the source's rows are now; what it says beyond that (versions, events) is checked too.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pyiceberg.catalog import Catalog

from tests.faults import source
from tests.support.postgres import SourceDatabase
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.sinks import WriteMode
from tidegate.lake import positions
from tidegate.lake.change_log import ChangeLog
from tidegate.names import TableId

Row = dict[str, Any]
Key = tuple[Any, ...]
_AS_TEXT = {"jsonb", "json", "uuid"}


def source_rows(db: SourceDatabase, table: str) -> dict[Key, Row]:
    columns = db.rows(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        f" WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    names = [name for name, _ in columns]
    selected = ", ".join(f"{n}::text" if kind in _AS_TEXT else n for n, kind in columns)
    rows = [
        dict(zip(names, row, strict=True)) for row in db.rows(f"SELECT {selected} FROM {table}")
    ]
    return by_key(rows, source.TABLES[table])


def by_key(rows: Iterable[Row], key: tuple[str, ...]) -> dict[Key, Row]:
    """Rows by key; two rows with one key are a failure."""
    found: dict[Key, Row] = {}
    for row in rows:
        place = tuple(row[name] for name in key)
        assert place not in found, f"two rows with key {place}"
        found[place] = row
    return found


def lake_rows(catalog: Catalog, pipeline: PipelineConfig, table: str) -> list[Row]:
    loaded = catalog.load_table(pipeline.target(TableId.parse(table)).identifier)
    rows: list[Row] = loaded.scan().to_arrow().to_pylist()
    return rows


def live_rows(pipeline: PipelineConfig, table: str, rows: list[Row]) -> dict[Key, Row]:
    """What the lake says the source's rows are now."""
    target, key = pipeline.target(TableId.parse(table)), source.TABLES[table]
    match target.write_mode:
        case WriteMode.APPEND:
            return replayed(rows, key)
        case WriteMode.HISTORY:
            check_versions(rows, key)
            rows = [row for row in rows if row["_cdc_current"]]
        case WriteMode.UPSERT if target.soft_delete:
            by_key(rows, key)  # a flagged row does not stand beside a live one
            rows = [row for row in rows if not row["_cdc_deleted"]]
    return by_key([bare(row) for row in rows], key)


def bare(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_cdc_")}


def replayed(rows: list[Row], key: tuple[str, ...]) -> dict[Key, Row]:
    """The rows of the last read, and every event after it, in order."""
    doubles = [n for n, count in Counter(row["_cdc_event_id"] for row in rows).items() if count > 1]
    assert not doubles, f"{len(doubles)} events are there twice"
    cut = max(row["_cdc_position"] for row in rows if row["_cdc_op"] == "r")
    state: dict[Key, Row] = {}
    for row in sorted(rows, key=lambda row: str(row["_cdc_position"])):
        if row["_cdc_position"] < cut or (row["_cdc_position"] == cut and row["_cdc_op"] != "r"):
            continue
        place = tuple(row[name] for name in key)
        if row["_cdc_op"] == "t":
            state.clear()
        elif row["_cdc_op"] == "d":
            state.pop(place, None)
        else:
            state[place] = bare(row)  # no key of an append table changes in these tests
    return state


def check_versions(rows: list[Row], key: tuple[str, ...]) -> None:
    """Versions of a key follow one another without overlap; the last alone may be current."""
    ordered = sorted(rows, key=lambda row: (tuple(row[n] for n in key), row["_cdc_from_position"]))
    for place, versions in itertools.groupby(ordered, lambda row: tuple(row[n] for n in key)):
        listed = list(versions)
        for one, two in itertools.pairwise(listed):
            assert not one["_cdc_current"], f"{place}: a version before the last is current"
            assert one["_cdc_to_position"] <= two["_cdc_from_position"], f"{place}: overlap"
            assert one["_cdc_from_position"] != two["_cdc_from_position"], f"{place}: doubled"
        assert listed[-1]["_cdc_current"] == (listed[-1]["_cdc_to_position"] is None), place


def differences(db: SourceDatabase, catalog: Catalog, pipeline: PipelineConfig) -> list[str]:
    """Every way in which the lake is not the source; empty if it is."""
    found: list[str] = []
    for table in pipeline.source.tables:
        wanted = source_rows(db, table)
        seen = live_rows(pipeline, table, lake_rows(catalog, pipeline, table))
        missing, extra = wanted.keys() - seen.keys(), seen.keys() - wanted.keys()
        changed = [key for key in wanted.keys() & seen.keys() if wanted[key] != seen[key]]
        for what, keys in (("missing", missing), ("extra", extra), ("different", changed)):
            if keys:
                found.append(f"{table}: {len(keys)} {what}, e.g. {sorted(keys, key=repr)[:3]}")
    return found


def check_log(
    db: SourceDatabase, catalog: Catalog, pipeline: PipelineConfig, *, trimmed: bool = False
) -> int:
    """The change log holds every change exactly once, whole transactions, each session's in the
    order of their commits; how many it holds.

    Of a trimmed log that is true from its oldest transaction on, per table.
    """
    log = ChangeLog(catalog, pipeline).table().scan().to_arrow()
    ids = log["event_id"].to_pylist()
    assert len(ids) == len(set(ids)), "an event is in the change log twice"
    rows = sorted(log.to_pylist(), key=lambda row: str(row["position"]))
    for table in pipeline.source.tables:
        logged = [row for row in rows if row["table"] == table]
        _check_table_log(table, logged, source.noted(db, table), trimmed)
    return len(rows)


def _check_table_log(
    table: str, logged: list[Row], noted: list[source.Note], trimmed: bool
) -> None:
    wanted: dict[int, list[tuple[str, list[str] | None]]] = {}
    for note in noted:
        wanted.setdefault(note.xid, []).append((note.op, note.key))
    found = [
        (xid, [(row["op"], row["key"]) for row in events])
        for xid, events in itertools.groupby(logged, lambda row: row["tx_id"])
    ]
    order = [xid for xid, _ in found]
    assert len(order) == len(set(order)), f"{table}: a transaction is in two pieces"
    for xid, events in found:
        assert events == wanted.get(xid), f"{table}: transaction {xid} is not as it was committed"
    for session in {note.session for note in noted}:
        own = list(dict.fromkeys(note.xid for note in noted if note.session == session))
        seen = [xid for xid in order if xid in set(own)]
        expected = own[len(own) - len(seen) :] if trimmed else own
        assert seen == expected, f"{table}: {len(seen)} transactions of {len(own)}, or in disorder"


def check_events(catalog: Catalog, pipeline: PipelineConfig) -> None:
    """Append tables hold exactly the log's events after their last sweep (as far back as the log
    still reaches)."""
    log = ChangeLog(catalog, pipeline).table().scan().to_arrow().to_pylist()
    for target in pipeline.targets:
        if target.write_mode is not WriteMode.APPEND:
            continue
        rows = lake_rows(catalog, pipeline, target.source)
        cut = max(row["_cdc_position"] for row in rows if row["_cdc_op"] == "r")
        logged = {
            f"{row['epoch']}/{row['position']}": row["event_id"]
            for row in log
            if row["table"] == target.source
        }
        floor = max(cut, min(logged, default=cut))
        wanted = {event for place, event in logged.items() if place > floor}
        seen = {row["_cdc_event_id"] for row in rows if row["_cdc_position"] > floor}
        missing, extra = len(wanted - seen), len(seen - wanted)
        assert not (missing or extra), f"{target.source}: {missing} events missing, {extra} extra"


def check_positions(catalog: Catalog, pipeline: PipelineConfig) -> None:
    """Every table says where it stands, never past what was captured, and main never went back."""
    head = ChangeLog(catalog, pipeline).head().captured_through
    for target in pipeline.targets:
        table = catalog.load_table(target.identifier)
        applied = positions.applied(table)
        assert applied is not None and applied <= head, f"{target.source} stands at {applied}"
        line = [positions.stamp(snapshot) for snapshot in positions.ancestors(table.metadata)]
        stamps = [stamp for stamp in line if stamp is not None]
        assert stamps == sorted(stamps, reverse=True), f"{target.source} went back"
