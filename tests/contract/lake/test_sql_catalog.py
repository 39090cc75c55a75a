"""Metadata that was read once is not read again, and is never taken for newer metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.types import LongType, NestedField
from sqlalchemy import event

from tidegate.config.platform import PlatformConfig
from tidegate.lake.catalog import load_all, open_catalog
from tidegate.lake.sql_catalog import Newest
from tidegate.names import CATALOG

NAME = ("own", "numbers")
ROWS = pa.table({"n": pa.array([1], pa.int64())})


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sizes of metadata that was parsed."""
    sizes: list[int] = []
    parse = TableMetadataUtil.parse_raw

    def counted(data: str) -> object:
        sizes.append(len(data))
        return parse(data)

    monkeypatch.setattr(TableMetadataUtil, "parse_raw", staticmethod(counted))
    yield sizes


@pytest.fixture
def ours(platform: PlatformConfig) -> Catalog:
    catalog = open_catalog(platform)
    catalog.create_namespace(NAME[0])
    catalog.create_table(NAME, Schema(NestedField(1, "n", LongType(), required=False)))
    return catalog


def test_own_commits_are_never_read_back(ours: Catalog, parsed: list[int]) -> None:
    ours.load_table(NAME)
    known = len(parsed)
    for number in range(3):
        ours.load_table(NAME).append(ROWS)
        assert len(ours.load_table(NAME).history()) == number + 1
    assert len(parsed) == known


def test_a_commit_of_another_program_is_seen_at_once(
    platform: PlatformConfig, ours: Catalog, parsed: list[int]
) -> None:
    ours.load_table(NAME)
    uri = ours.properties["uri"]
    other = load_catalog(CATALOG, type="sql", uri=uri, warehouse=ours.properties["warehouse"])
    assert type(other) is SqlCatalog
    other.load_table(NAME).append(ROWS)
    read = len(parsed)
    table = ours.load_table(NAME)
    assert len(table.history()) == 1
    assert len(parsed) == read + 1
    assert open_catalog(platform).load_table(NAME).metadata is table.metadata


def test_what_was_loaded_stays_as_it_was_when_others_commit(ours: Catalog) -> None:
    early, late = ours.load_table(NAME), ours.load_table(NAME)
    late.append(ROWS)
    assert (len(early.history()), len(late.history())) == (0, 1)
    assert len(early.refresh().history()) == 1


def test_a_table_made_anew_is_not_the_old_one(ours: Catalog) -> None:
    old = ours.load_table(NAME)
    old.append(ROWS)
    schema = old.schema()
    ours.drop_table(NAME)
    ours.create_table(NAME, schema)
    table = ours.load_table(NAME)
    assert table.metadata.table_uuid != old.metadata.table_uuid
    assert not table.history()


def test_only_the_newest_of_so_many_snapshots_is_kept(ours: Catalog) -> None:
    ours.load_table(NAME).append(ROWS)
    metadata = ours.load_table(NAME).metadata
    newest = Newest(snapshots=2 * (1 + len(metadata.snapshots)))
    for location in ("a/m/1.json", "b/m/1.json", "a/m/2.json", "c/m/1.json"):
        newest.put(location, metadata)
    kept = ("a/m/1.json", "a/m/2.json", "b/m/1.json", "c/m/1.json")
    assert [newest.get(location) is not None for location in kept] == [False, True, False, True]


def test_purging_reads_a_manifest_once_and_leaves_no_file(
    ours: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        ours.load_table(NAME).append(ROWS)
    folder = Path(ours.load_table(NAME).location().removeprefix("file://"))
    assert len(list(folder.rglob("*.parquet"))) == 4
    read: list[str] = []
    fetch = ManifestFile.fetch_manifest_entry

    def counted(self: ManifestFile, *arguments: Any, **named: Any) -> Any:
        read.append(self.manifest_path)
        return fetch(self, *arguments, **named)

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", counted)
    ours.purge_table(NAME)
    assert len(read) == len(set(read)) == 4
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert not ours.table_exists(NAME)


def test_many_tables_are_loaded_with_one_question(ours: Catalog) -> None:
    names = [f"many_{place}" for place in range(12)]
    for name in names:
        ours.create_table((NAME[0], name), ours.load_table(NAME).schema())
    asked: list[str] = []
    engine = ours.engine  # type: ignore[attr-defined]

    def count(*arguments: Any) -> None:
        asked.append(str(arguments[2]))

    event.listen(engine, "before_cursor_execute", count)
    found = load_all(ours, [(NAME[0], name) for name in [*names, "is_not_there"]])
    event.remove(engine, "before_cursor_execute", count)
    assert len(asked) == 1
    assert set(found) == {(NAME[0], name) for name in names}
    assert found[NAME[0], "many_3"].metadata_location == (
        ours.load_table((NAME[0], "many_3")).metadata_location
    )
