"""What people type: tables of a list, keys of a row."""

from __future__ import annotations

import pytest

from tidegate.cli.commands.consume import WIDEST, _key, _short
from tidegate.cli.commands.init import _answered
from tidegate.errors import ConfigError

NAMES = ["public.a", "public.b", 'public."odd.name"', "shop.c"]


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("all", ["public.a"]),
        ("1, 4", ["public.a", "shop.c"]),
        ("b, shop.c,", ["public.b", "shop.c"]),
        ('public."odd.name"', ['public."odd.name"']),
        ("9", ["public.9"]),
    ],
)
def test_tables_are_chosen_by_name_or_number(answer: str, chosen: list[str]) -> None:
    assert list(_answered(answer, NAMES, ["public.a"])) == chosen


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ConfigError):
        _answered("a.b.c.d", NAMES, [])


def test_a_key_of_several_columns_is_a_json_list() -> None:
    assert _key(None) is None
    assert _key("7") == ["7"]
    assert _key('["7", "de"]') == ["7", "de"]
    assert _key("[odd") == ["[odd"], "a text that looks like one is a text"


def test_values_are_short_and_on_one_line() -> None:
    assert _short(None) == "null"
    assert _short("two\nlines") == "two\\nlines"
    assert len(_short("x" * 1000)) == WIDEST
