"""Who waits behind a change that cannot be applied."""

from __future__ import annotations

from tidegate.envelope.dead_letter import Role
from tidegate.lake.waiting import Step, who_waits

FAILED, WAITING = Role.FAILED, Role.WAITING


def step(place: str, key: str, new_key: str | None = None, *, gone: bool = False) -> Step:
    return Step(place, place, (key,), (new_key or key,), gone)


def waits(
    steps: list[Step],
    failing: set[str],
    blocked: set[str] = frozenset(),  # type: ignore[assignment]
    *,
    last_only: bool = True,
    keeps_images: bool = False,
) -> dict[str, Role]:
    keys = {(key,) for key in blocked}
    found = who_waits(steps, failing, keys, last_only=last_only, keeps_images=keeps_images)
    return dict(found.changes)


def test_a_failing_change_waits_alone_and_other_rows_go_on() -> None:
    steps = [step("1", "a"), step("2", "b"), step("3", "c")]
    assert waits(steps, {"2"}) == {"2": FAILED}


def test_later_changes_of_the_row_wait_where_every_version_counts() -> None:
    steps = [step("1", "a"), step("2", "a"), step("3", "a"), step("4", "b")]
    assert waits(steps, {"2"}, last_only=False) == {"2": FAILED, "3": WAITING}


def test_a_good_change_makes_up_for_a_failing_one_where_only_the_last_counts() -> None:
    steps = [step("1", "a"), step("2", "a"), step("3", "a")]
    assert waits(steps, {"2"}) == {}
    assert waits(steps, {"2", "3"}) == {"2": FAILED, "3": FAILED}
    assert waits(steps, {"1", "3"}) == {"3": FAILED}


def test_a_delete_makes_up_for_a_failing_change_unless_deleted_rows_are_kept() -> None:
    steps = [step("1", "a"), step("2", "a", gone=True)]
    assert waits(steps, {"1"}) == {}
    assert waits(steps, {"1"}, keeps_images=True) == {"1": FAILED, "2": WAITING}


def test_rows_with_letters_wait_whatever_comes() -> None:
    steps = [step("1", "a"), step("2", "b"), step("3", "a", gone=True)]
    assert waits(steps, set(), {"a"}) == {"1": WAITING, "3": WAITING}


def test_a_row_is_followed_through_its_key_changes() -> None:
    steps = [
        step("1", "a"),
        step("2", "a", "b"),
        step("3", "b"),
        step("4", "a"),  # another row takes the key that became free
        step("5", "c"),
    ]
    assert waits(steps, {"1"}, last_only=False) == {
        "1": FAILED,
        "2": WAITING,
        "3": WAITING,
        "4": WAITING,
    }


def test_a_move_onto_a_row_that_waits_keeps_its_own_row_waiting() -> None:
    steps = [step("1", "a", "b"), step("2", "a")]
    assert waits(steps, set(), {"b"}) == {"1": WAITING, "2": WAITING}


def test_a_change_that_waits_makes_up_for_nothing() -> None:
    # The move would leave row a in a good state, but it waits for b.
    steps = [step("1", "a"), step("2", "a", "b")]
    assert waits(steps, {"1"}) == {}
    assert waits(steps, {"1"}, {"b"}) == {"1": FAILED, "2": WAITING}


def test_steps_are_taken_in_log_order_however_they_come() -> None:
    steps = [step("3", "a"), step("1", "a"), step("2", "a")]
    assert waits(steps, {"3"}) == {"3": FAILED}
