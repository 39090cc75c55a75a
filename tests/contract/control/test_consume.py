"""Changes of the log: in order, filtered, from any position, followed."""

from __future__ import annotations

import itertools
import threading

import pytest

from tests.support.changes import BIG
from tests.support.shop import CUSTOMERS, ORDERS, Shop
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control import consume
from tidegate.control.consume import changes, record, wanted
from tidegate.envelope.position import boundary, format_lsn
from tidegate.errors import ConfigError
from tidegate.lake import log_reader


@pytest.fixture
def busy(shop: Shop) -> Shop:
    """Three captures whose transactions touch both tables."""
    for turn in range(3):
        for number in range(4):
            key = str(turn * 4 + number)
            shop.orders.insert(key, f"{BIG}note {key}", "1.50")
            shop.orders.commit()
            shop.customers.insert(key, f"name {key}")
            shop.customers.commit()
        shop.capture()
    shop.orders.update(shop.orders.find("3"), price="2.00")
    shop.orders.commit()
    shop.orders.delete(shop.orders.find("4"))
    shop.orders.commit()
    shop.orders.update(shop.orders.find("5"), id="500")
    shop.orders.commit()
    shop.orders.truncate()
    shop.orders.commit()
    shop.capture()
    return shop


def test_all_changes_come_in_log_order(
    busy: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    found = list(changes(pipeline, platform))
    places = [change.position.place for change in found]
    assert len(found) == 28 and places == sorted(places)
    assert {change.table for change in found[:4]} == {ORDERS, CUSTOMERS}, "tables alternate"


def test_windows_give_the_same(
    busy: Shop,
    platform: PlatformConfig,
    pipeline: PipelineConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = list(changes(pipeline, platform))
    for rows in (1, 3, 7, 8):
        monkeypatch.setattr(log_reader, "WINDOW_ROWS", rows)
        assert list(changes(pipeline, platform)) == whole


def test_filters_by_table_operation_and_key(
    busy: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    def found(**choice: list[str]) -> list[tuple[str, str]]:
        kept = wanted(pipeline, **choice)  # type: ignore[arg-type]
        return [(c.table, c.op) for c in changes(pipeline, platform, choice=kept)]

    assert found(tables=["customers"]) == [(CUSTOMERS, "c")] * 12
    assert found(ops=["d", "t"]) == [(ORDERS, "d"), (ORDERS, "t")]
    assert found(key=["3"]) == [(ORDERS, "c"), (CUSTOMERS, "c"), (ORDERS, "u")]
    assert found(key=["500"]) == [(ORDERS, "u")], "a row is found under its new key too"
    assert found(tables=[ORDERS], key=["5"]) == [(ORDERS, "c"), (ORDERS, "u")]
    with pytest.raises(ConfigError) as wrong:
        wanted(pipeline, ops=["x"])
    assert wrong.value.code == "consume.op"


def test_from_a_position_an_lsn_a_time_and_now(
    busy: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    whole = list(changes(pipeline, platform))
    third = whole[2]
    assert list(changes(pipeline, platform, after=str(third.position))) == whole[3:]
    lsn = format_lsn(third.position.lsn)
    assert list(changes(pipeline, platform, after=lsn)) == whole[2:], "what commits there comes"
    end = boundary(third.position.epoch, third.position.lsn + 1)
    assert list(changes(pipeline, platform, after=str(end))) == whole[3:]
    assert list(changes(pipeline, platform, after="now")) == []
    late = wanted(pipeline, since=third.commit_ts)
    assert list(changes(pipeline, platform, choice=late)) == whole[2:]


def test_an_older_epoch_comes_before_the_newer_one(
    busy: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    old = list(changes(pipeline, platform))
    busy.log.begin_epoch(boundary("model-2", 0x100))
    assert list(changes(pipeline, platform)) == []
    assert list(changes(pipeline, platform, after=str(old[0].position))) == old[1:]


def test_a_record_leaves_out_what_was_not_sent(
    busy: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    kept = wanted(pipeline, tables=[ORDERS], ops=["u"])
    first, moved = [record(c) for c in changes(pipeline, platform, choice=kept)]
    assert first.key == {"id": "3"}
    assert first.after == {"id": "3", "price": "2.00"} and first.unchanged == ("note",)
    assert first.before == {"id": "3", "note": f"{BIG}note 3", "price": "1.50"}
    assert moved.key == {"id": "5"} and moved.after is not None and moved.after["id"] == "500"


def test_a_reader_that_stops_early_reads_one_window(
    busy: Shop,
    platform: PlatformConfig,
    pipeline: PipelineConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_reader, "WINDOW_ROWS", 2)
    read: list[object] = []
    plain = log_reader._batches
    monkeypatch.setattr(log_reader, "_batches", lambda *a: read.append(a[3]) or plain(*a))
    assert len(list(itertools.islice(changes(pipeline, platform), 2))) == 2
    assert read == [("position",), ("*",)]


def test_following_waits_for_what_comes(
    busy: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    stop = threading.Event()
    stream = changes(pipeline, platform, after="now", follow=stop, poll_seconds=0.01)
    busy.customers.insert("77", "late")
    busy.customers.commit()
    writer = threading.Thread(target=busy.capture)
    writer.start()
    late = next(stream)
    writer.join()
    assert late.after == {"id": "77", "name": "late"}
    stop.set()
    assert list(stream) == []
    assert consume.POLL_SECONDS > 0
