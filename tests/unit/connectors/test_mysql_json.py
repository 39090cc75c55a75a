"""MySQL's binary JSON, as a real server wrote it: the text it printed comes out again."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from tidegate.connectors.mysql import json_diffs, json_values
from tidegate.connectors.mysql.json_values import Node, Scalar
from tidegate.errors import FatalError

RECORDED = json.loads((Path(__file__).parent / "mysql_json.json").read_text(encoding="utf-8"))


def node(value: Any) -> Node:
    if isinstance(value, dict):
        return {key: node(member) for key, member in value.items()}
    if isinstance(value, list):
        return [node(member) for member in value]
    return Scalar(json.dumps(value, ensure_ascii=False))


def inflated(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


@pytest.mark.parametrize(("stored", "text"), RECORDED["documents"])
def test_documents_are_printed_as_the_server_does(stored: str, text: str) -> None:
    assert json_values.text(json_values.parse(bytes.fromhex(stored))) == text


def test_documents_of_more_than_64_kb_have_a_form_of_their_own() -> None:
    kinds = set()
    for stored, text in RECORDED["large"]:
        document = inflated(stored)
        kinds.add(document[0])
        assert json_values.text(json_values.parse(document)) == inflated(text).decode()
    assert {1, 3} <= kinds  # a large object, a large array


@pytest.mark.parametrize(("before", "diffs", "after"), RECORDED["diffs"])
def test_partial_updates_give_the_document_that_the_server_has(
    before: str, diffs: str, after: str
) -> None:
    found = json_diffs.applied(node(json.loads(before)), bytes.fromhex(diffs))
    assert json_values.text(found) == after


def test_nothing_stored_is_a_json_null() -> None:
    assert json_values.text(json_values.parse(b"")) == "null"


@pytest.mark.parametrize(
    ("path", "legs"),
    [
        ("$.a", ["a"]),
        ("$[0][12]", [0, 12]),
        ('$.a."b c"[3].d', ["a", "b c", 3, "d"]),
        ('$."say \\"x\\""', ['say "x"']),
        ('$."a.b[1]"', ["a.b[1]"]),
    ],
)
def test_paths_are_taken_apart(path: str, legs: list[str | int]) -> None:
    assert json_diffs.legs(path) == legs


def test_a_change_of_a_place_that_is_not_there_stops() -> None:
    replace_a_in_an_array = bytes([0, 3, *b"$.a", 2, 4, 0])
    with pytest.raises(FatalError, match="json_diff"):
        json_diffs.applied([], replace_a_in_an_array)
