"""Compare-and-set: a commit lands on the snapshot it was made for, or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import RetriableError
from tidegate.lake import commits
from tidegate.lake.catalog import open_catalog

ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def table(catalog: Catalog) -> Table:
    catalog.create_namespace("shop")
    # No commit.retry properties: strictness must not hang on how the table was created.
    return catalog.create_table(("shop", "numbers"), ROWS.schema)


def test_of_two_writers_on_one_head_the_second_is_refused(
    catalog: Catalog, table: Table, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    with open_catalog(platform, pipeline) as other_catalog:
        other = other_catalog.load_table(("shop", "numbers"))
        first = commits.append_files(table, commits.write_files(table, ROWS), {}, None)
        with pytest.raises(RetriableError) as caught:
            commits.append_files(other, commits.write_files(other, ROWS), {}, None)
        assert caught.value.code == "lake.moved"
        other.refresh()
    assert [s.snapshot_id for s in other.metadata.snapshots] == [first]
    assert other.scan().to_arrow().num_rows == 3


def test_an_expectation_that_is_already_wrong_is_refused(table: Table) -> None:
    commits.append_files(table, (), {}, None)
    with pytest.raises(RetriableError, match="another writer"):
        commits.append_files(table, (), {}, None)


def test_a_refused_commit_leaves_no_metadata_behind(catalog: Catalog, table: Table) -> None:
    stale = catalog.load_table(("shop", "numbers"))
    commits.append_files(table, (), {}, None)
    metadata = Path(table.location().removeprefix("file://")) / "metadata"
    before = {p.name for p in metadata.glob("*.avro")}
    with pytest.raises(RetriableError):
        commits.append_files(stale, commits.write_files(stale, ROWS), {}, None)
    assert {p.name for p in metadata.glob("*.avro")} == before


def test_a_commit_without_files_carries_its_properties(table: Table) -> None:
    snapshot_id = commits.append_files(table, (), {"tidegate.position": "e/1"}, None)
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["tidegate.position"] == "e/1"
    assert commits.head_id(table) == snapshot_id


def test_files_are_replaced_in_one_snapshot(table: Table) -> None:
    head = commits.append_files(table, commits.write_files(table, ROWS), {}, None)
    old = [task.file for task in table.scan().plan_files()]
    new = commits.write_files(table, ROWS.slice(0, 1))
    commits.replace_files(table, old, new, {"why": "test"}, head)
    assert table.scan().to_arrow()["n"].to_pylist() == [1]
    with pytest.raises(RetriableError):
        commits.replace_files(table, (), (), {}, head)


def test_a_full_disk_is_retriable_and_named() -> None:
    with pytest.raises(RetriableError) as caught, commits.storage_errors():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.code == "lake.storage_full"


def test_other_storage_errors_stay_what_they_are() -> None:
    with pytest.raises(PermissionError), commits.storage_errors():
        raise PermissionError(errno.EACCES, "no")
