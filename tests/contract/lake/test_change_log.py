"""The change log: one writer, captured_through in every snapshot, nothing twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from tests.support.lake import log_rows
from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position, boundary
from tidegate.errors import FatalError, RetriableError
from tidegate.lake import commits, log_writer
from tidegate.lake.change_log import ChangeLog, LogWriter
from tidegate.lake.positions import summary
from tidegate.names import CAPTURED_THROUGH, EPOCH_PROPERTY


def at(lsn: int, epoch: str = "e1") -> Position:
    return boundary(epoch, lsn)


@pytest.fixture
def log(catalog: Catalog, pipeline: PipelineConfig) -> ChangeLog:
    log = ChangeLog(catalog, pipeline)
    log.create(at(10))
    return log


def places(log: ChangeLog) -> list[str]:
    return sorted(log.table().scan().to_arrow()["position"].to_pylist())


def data_files(log: ChangeLog) -> list[Path]:
    return list(Path(log.table().location().removeprefix("file://")).rglob("*.parquet"))


def test_a_new_log_is_captured_through_where_it_begins(log: ChangeLog) -> None:
    head = log.head()
    assert head.captured_through == at(10)
    snapshot = log.table().metadata.snapshot_by_id(head.snapshot_id)
    assert snapshot is not None
    assert summary(snapshot)[EPOCH_PROPERTY] == "e1"


def test_creating_again_changes_nothing(log: ChangeLog) -> None:
    head = log.head()
    assert log.create(at(10)) == head
    assert log.create(at(999)) == head


def test_another_epoch_is_refused_until_it_is_begun_on_purpose(log: ChangeLog) -> None:
    with pytest.raises(FatalError) as caught:
        log.create(at(5, "e2"))
    assert caught.value.code == "change_log.other_epoch"
    assert log.begin_epoch(at(5, "e2")).captured_through == at(5, "e2")
    assert log.begin_epoch(at(7, "e2")).captured_through == at(5, "e2")


def test_an_anchor_is_kept_beside_what_was_captured(log: ChangeLog) -> None:
    assert log.head().captured_through.anchor is None
    log.writer().commit(boundary("e1", 20, "one"))
    assert log.writer().through.anchor == "one"
    log.begin_epoch(boundary("e2", 5, "two"))
    assert log.head().captured_through.anchor == "two"


def test_a_create_that_was_killed_before_its_stamp_is_finished(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    log = ChangeLog(catalog, pipeline)
    log._create()
    with pytest.raises(FatalError):
        log.head()
    assert log.create(at(10)).captured_through == at(10)


def test_without_deploy_there_is_no_log(catalog: Catalog, pipeline: PipelineConfig) -> None:
    log = ChangeLog(catalog, pipeline)
    assert not log.exists()
    with pytest.raises(FatalError) as caught:
        log.head()
    assert caught.value.code == "change_log.missing"


def test_rows_are_visible_only_after_commit_all_in_one_snapshot(log: ChangeLog) -> None:
    writer = log.writer()
    writer.write(log_rows([11, 12]))
    writer.flush()
    writer.write([log_rows([13], "public.customers"), log_rows([14])])
    assert writer.pending_rows == 4
    assert places(log) == []
    head = writer.commit(at(20), {"tidegate.run": "r1"})
    assert head.captured_through == at(20)
    assert len(places(log)) == 4
    assert len(log.table().metadata.snapshots) == 2
    assert writer.pending_rows == 0
    assert writer.commit(at(21)).captured_through == at(21)
    assert len(places(log)) == 4


def test_memory_is_bounded_by_flushing(log: ChangeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "FLUSH_BYTES", 1)
    writer = log.writer()
    for lsn in range(11, 15):
        writer.write(log_rows([lsn]))
        assert writer._waiting == []
    writer.commit(at(20))
    assert len(places(log)) == 4


def test_files_are_split_by_day_and_bucket_and_sorted(log: ChangeLog) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    writer = log.writer()
    writer.write(
        pa.Table.from_batches(
            [
                log_rows([11], "public.orders", captured_at=noon),
                log_rows([12], "public.customers", captured_at=noon),
                log_rows([13], "public.orders", captured_at=noon + timedelta(days=1)),
                log_rows([14], "public.orders", captured_at=noon),
            ]
        )
    )
    writer.commit(at(20))
    table = log.table()
    files = table.inspect.files()
    partitions = {
        (p["captured_day"].isoformat(), p["table_bucket"]) for p in files["partition"].to_pylist()
    }
    assert len(partitions) == files.num_rows == 3
    assert {day for day, _ in partitions} == {"2026-03-01", "2026-03-02"}
    only = table.scan("table = 'public.orders' and captured_at < '2026-03-02T00:00:00+00:00'")
    assert [t.file.record_count for t in only.plan_files()] == [2]
    assert only.to_arrow()["tx_id"].to_pylist() == [11, 14]


def test_bounds_of_values_stay_out_of_the_metadata(log: ChangeLog) -> None:
    writer = log.writer()
    writer.write(log_rows([11]))
    writer.commit(at(20))
    (task,) = log.table().scan().plan_files()
    assert set(task.file.lower_bounds) == {
        1,
        3,
        5,
        6,
        7,
    }  # epoch position commit_ts captured_at table
    assert task.file.upper_bounds[3] == log_rows([11])["position"][0].as_py().encode()


def test_an_idle_commit_moves_the_position_and_writes_no_file(log: ChangeLog) -> None:
    assert log.commit_idle(at(99)).captured_through == at(99)
    assert data_files(log) == []


def test_two_writers_end_in_an_error_and_nothing_is_doubled(log: ChangeLog) -> None:
    one, two = log.writer(), log.writer()
    one.write(log_rows([11]))
    two.write(log_rows([11]))
    one.commit(at(20))
    with pytest.raises(FatalError) as caught:
        two.commit(at(20))
    assert caught.value.code == "capture.two_writers"
    assert len(places(log)) == 1


def test_maintenance_in_between_is_no_second_writer(log: ChangeLog) -> None:
    writer = log.writer()
    writer.write(log_rows([11]))
    table = log.table()
    commits.append_files(table, (), {"tidegate.step": "trim"}, commits.head_id(table))
    head = writer.commit(at(20))
    assert head.captured_through == at(20)
    assert len(places(log)) == 1


def test_a_head_that_moves_during_the_commit_is_tried_again(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = commits.append_files, []

    def overtaken(table, files, properties, head):  # type: ignore[no-untyped-def]
        if CAPTURED_THROUGH in properties and not calls:
            calls.append(1)
            other = log.table()
            real(other, (), {"tidegate.step": "trim"}, commits.head_id(other))
        return real(table, files, properties, head)

    monkeypatch.setattr(commits, "append_files", overtaken)
    writer = log.writer()
    writer.write(log_rows([11]))
    assert writer.commit(at(20)).captured_through == at(20)
    assert len(places(log)) == 1


def test_a_commit_whose_answer_was_lost_is_not_repeated(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = commits.append_files

    def lost(*args):  # type: ignore[no-untyped-def]
        real(*args)
        raise RetriableError("lake.commit_unknown", "lost", hint="try again")

    monkeypatch.setattr(commits, "append_files", lost)
    writer = log.writer()
    writer.write(log_rows([11]))
    with pytest.raises(RetriableError):
        writer.commit(at(20))
    monkeypatch.setattr(commits, "append_files", real)
    assert writer.commit(at(20)).captured_through == at(20)
    assert len(places(log)) == 1


def test_rows_whose_files_could_not_be_written_are_neither_lost_nor_doubled(
    log: ChangeLog,
) -> None:
    blocked = Path(log.table().location().removeprefix("file://")) / "data"
    blocked.write_text("a file where the directory should be")
    writer = log.writer()
    writer.write([log_rows([11], "public.customers"), log_rows([12])])
    with pytest.raises(OSError, match="data"):
        writer.commit(at(20))
    assert log.head().captured_through == at(10)
    blocked.unlink()
    assert writer.commit(at(20)).captured_through == at(20)
    assert len(places(log)) == 2


def test_the_log_never_goes_back_or_into_another_epoch(log: ChangeLog) -> None:
    writer = log.writer()
    for wrong in (at(9), at(30, "e2")):
        with pytest.raises(FatalError) as caught:
            writer.commit(wrong)
        assert caught.value.code == "change_log.backwards"


def test_abort_deletes_what_was_not_committed(log: ChangeLog) -> None:
    writer: LogWriter = log.writer()
    writer.write(log_rows([11]))
    writer.flush()
    assert len(data_files(log)) == 1
    writer.abort()
    assert data_files(log) == []
    writer.write(log_rows([12]))
    writer.commit(at(20))
    assert len(places(log)) == 1


def test_drop_removes_the_table_and_its_files(log: ChangeLog) -> None:
    writer = log.writer()
    writer.write(log_rows([11]))
    writer.commit(at(20))
    files = data_files(log)
    assert log.drop()
    assert not log.exists()
    assert not any(file.exists() for file in files)
    assert not log.drop()
