"""Offsets: where tables stand, and what moving one would mean or why it is refused."""

from __future__ import annotations

import pytest

from tests.support.shop import CUSTOMERS, ORDERS, Shop
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.sinks import WriteMode
from tidegate.control.offsets import offsets, plan
from tidegate.envelope.position import Position, format_lsn
from tidegate.errors import TidegateError
from tidegate.lake.reposition import Direction, Move
from tidegate.names import TableId


@pytest.fixture
def cuts(shop: Shop) -> list[Position]:
    """Three boundaries with two changes of ``orders`` after each; the table stands at the third."""
    found = []
    for turn in range(3):
        found.append(shop.capture())
        for number in range(2):
            shop.orders.insert(str(turn * 2 + number), "x", None)
            shop.orders.commit()
    shop.capture()
    shop.stands(ORDERS, found[:1], "sweep")
    shop.stands(ORDERS, found[1:])
    return found


def refused(pipeline: PipelineConfig, platform: PlatformConfig, to: object, **how: bool) -> str:
    with pytest.raises(TidegateError) as error:
        plan(pipeline, platform, ORDERS, str(to), **how)
    assert error.value.hint
    return error.value.code


def test_back_replays_and_says_how_much(
    cuts: list[Position], platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    move: Move = plan(pipeline, platform, "orders", str(cuts[1]))
    assert (move.direction, move.changes) == (Direction.REPLAY, 2)
    assert (move.from_position, move.to_position) == (cuts[2], cuts[1])
    assert "2 changes, committed 2024-05-01" in move.words and "again" in move.words
    assert plan(pipeline, platform, ORDERS, format_lsn(cuts[1].lsn)).to_position == cuts[1]
    assert plan(pipeline, platform, ORDERS, str(cuts[2])).direction is Direction.NONE


def test_forward_skips_only_if_that_is_said(
    cuts: list[Position], shop: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    head = shop.log.head().captured_through
    assert refused(pipeline, platform, head) == "offsets.needs_skip"
    move = plan(pipeline, platform, ORDERS, str(head), skip=True)
    assert (move.direction, move.changes) == (Direction.SKIP, 2)
    assert "never" in move.words


def test_forward_over_nothing_needs_no_word(
    cuts: list[Position], shop: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    shop.stands(CUSTOMERS, cuts[:1])
    assert plan(pipeline, platform, CUSTOMERS, str(cuts[2])).changes == 0


def test_places_that_are_refused(
    cuts: list[Position], platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    inside = Position(cuts[0].epoch, cuts[1].place[:-1] + "1")
    assert refused(pipeline, platform, inside) == "offsets.inside_transaction"
    beyond = Position(cuts[0].epoch, f"{cuts[2].lsn + 0x10000:016X}.0000000000")
    assert refused(pipeline, platform, beyond) == "offsets.not_captured"
    assert refused(pipeline, platform, f"other/{cuts[1].place}") == "offsets.other_epoch"
    before = Position(cuts[0].epoch, f"{cuts[0].lsn - 1:016X}.0000000000")
    assert refused(pipeline, platform, before) == "offsets.not_held"


def test_no_replay_of_what_is_older_than_a_sweep(
    cuts: list[Position], shop: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    shop.stands(ORDERS, [cuts[2]], "repair")
    assert refused(pipeline, platform, cuts[1]) == "offsets.before_sweep"
    (orders,) = offsets(pipeline, platform, [ORDERS]).tables
    assert orders.lowest == str(cuts[2])


def test_no_replay_over_a_gap_behind_which_a_sweep_may_have_been(
    cuts: list[Position], shop: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    """A tag keeps an old snapshot, and with it the log's rows; the snapshots between expired."""
    table = shop.catalog.load_table(pipeline.target(TableId.parse(ORDERS)).identifier)
    first, second, _ = sorted(table.metadata.snapshots, key=lambda s: s.sequence_number or 0)
    table.manage_snapshots().create_tag(first.snapshot_id, "kept").commit()
    table.maintenance.expire_snapshots().by_id(second.snapshot_id).commit()
    assert refused(pipeline, platform, cuts[1]) == "offsets.not_held"
    assert offsets(pipeline, platform, [ORDERS]).tables[0].lowest == str(cuts[2])


@pytest.mark.parametrize("mode", [WriteMode.APPEND, WriteMode.HISTORY])
def test_no_replay_where_changes_would_stand_twice(
    cuts: list[Position], platform: PlatformConfig, pipeline: PipelineConfig, mode: WriteMode
) -> None:
    sink = {"sink_id": "lake", "sink_type": "iceberg", "iceberg": {"write_mode": mode}}
    other = PipelineConfig.model_validate({**pipeline.model_dump(), "sinks": (sink,)})
    assert refused(other, platform, cuts[1]) == "offsets.would_double"
    assert offsets(other, platform, [ORDERS]).tables[0].lowest is None


def changed(shop: Shop, *steps: str) -> list[Position]:
    """The boundary before each transaction of ``customers``, and the one that the table stands at.
    ``~`` begins a value that is not sent while it stays the same."""
    found = [shop.capture()]
    model = shop.customers
    for step in steps:
        verb, *keys = step.split()
        match verb:
            case "insert":
                model.insert(keys[0], f"~{keys[0]}")
            case "move":
                model.update(model.find(keys[0]), id=keys[1])
            case "touch":
                model.update(model.find(keys[0]))
            case "write":
                model.update(model.find(keys[0]), name=f"~{shop.clock.lsn}")
            case "delete":
                model.delete(model.find(keys[0]))
            case "truncate":
                model.truncate()
        model.commit()
        found.append(shop.clock.position)
    shop.capture()
    shop.stands(CUSTOMERS, found)
    return found


@pytest.mark.parametrize(
    ("steps", "refuses", "lowest"),
    [
        # the row whose value is wanted is no longer under 2
        (("insert 2", "move 2 3"), {1}, 2),
        # another row is
        (("insert 2", "insert 3", "move 2 1", "move 3 2", "move 1 3"), {1, 2, 3, 4}, 5),
        (("insert 2", "touch 2", "delete 2"), {1}, 2),
        (("insert 2", "touch 2", "truncate"), {1}, 2),
        # a replay that begins with the whole row needs nothing of the lake's
        (("insert 2", "touch 2", "write 2", "delete 2"), {1}, 2),
        (("insert 2", "write 2", "touch 2", "write 2", "delete 2"), {2}, 3),
        # the row is still there
        (("insert 2", "touch 2", "touch 2"), set(), 3),
    ],
)
def test_no_replay_of_changes_that_left_out_what_the_lake_no_longer_has(
    shop: Shop,
    platform: PlatformConfig,
    pipeline: PipelineConfig,
    steps: tuple[str, ...],
    refuses: set[int],
    lowest: int,
) -> None:
    at = changed(shop, *steps)
    for number, wanted in enumerate(at):
        if number not in refuses:
            plan(pipeline, platform, CUSTOMERS, str(wanted))
            continue
        with pytest.raises(TidegateError) as error:
            plan(pipeline, platform, CUSTOMERS, str(wanted))
        assert error.value.code == "offsets.unsent_values"
        assert str(at[lowest]) in (error.value.hint or ""), "the nearest place that is open"


def test_a_table_that_was_never_swept_has_no_offset(
    cuts: list[Position], platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    with pytest.raises(TidegateError) as error:
        plan(pipeline, platform, CUSTOMERS, str(cuts[1]))
    assert error.value.code == "offsets.never_swept"
    customers, orders = offsets(pipeline, platform).tables
    assert (customers.position, customers.needs) == (None, "a first sweep")
    assert (orders.position, orders.lowest) == (str(cuts[2]), str(cuts[0]))
    assert orders.lsn == format_lsn(cuts[2].lsn) and orders.lag_bytes


def test_before_a_deploy_there_is_nothing(
    platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    found = offsets(pipeline, platform)
    assert found.captured_through is None and {t.position for t in found.tables} == {None}
