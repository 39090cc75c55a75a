"""Who acts: the door's word, else the starter's, else the process's user."""

from __future__ import annotations

import pytest

from tidegate.observability.caller import (
    CALLER_VARIABLE,
    Caller,
    Surface,
    acting_as,
    current,
    this_user,
)


def test_without_a_door_it_is_the_library_used_by_this_user() -> None:
    assert current() == this_user(Surface.PYTHON)
    assert "@" in current().name


def test_a_job_learns_it_from_who_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ann = Caller('ann "the" admin', Surface.AIRFLOW)
    for name, value in ann.variable().items():
        monkeypatch.setenv(name, value)
    assert current() == ann
    with acting_as(Caller("bob", Surface.CLI)):
        assert str(current()) == "bob (cli)"
    assert current() == ann


@pytest.mark.parametrize("wrong", ["", "ann", "[]", '{"name": "ann"}', '{"name": 1, "surface": 2}'])
def test_a_wrong_variable_is_not_believed(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv(CALLER_VARIABLE, wrong)
    assert current().surface is Surface.PYTHON


def test_long_names_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*next(iter(Caller("x" * 1000, Surface.AIRFLOW).variable().items())))
    assert len(current().name) == 200
