"""The columnwise decoder agrees with a decoder that walks value by value."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.connectors.postgres.decoder import Decoder
from tidegate.connectors.postgres.pgoutput import RelationMessage
from tidegate.envelope.position import Position, lsn_place
from tidegate.errors import FatalError
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, TextRule

COLUMNS = 3
Value = str | None
UNCHANGED = "\x00unchanged"


def _relation(relid: int, name: str) -> bytes:
    text = struct.pack(">cI", b"R", relid) + b"public\0" + name.encode() + b"\0d"
    text += struct.pack(">H", COLUMNS)
    for column in range(COLUMNS):
        text += bytes([1 if column == 0 else 0]) + f"c{column}".encode() + b"\0"
        text += struct.pack(">Ii", 25, -1)
    return text


def _tuple(values: list[Value]) -> bytes:
    text = struct.pack(">H", len(values))
    for value in values:
        if value is None:
            text += b"n"
        elif value == UNCHANGED:
            text += b"u"
        else:
            data = value.encode()
            text += b"t" + struct.pack(">I", len(data)) + data
    return text


def _schema(message: RelationMessage) -> TableSchema | None:
    if message.table.name == "ignored":
        return None
    columns = tuple(
        Column(c.name, "text", STRING, TextRule.PLAIN, key=0 if c.identity else None)
        for c in message.columns
    )
    return TableSchema(message.table, columns)


@dataclass
class Script:
    """Messages, and the rows a reader would write down by hand."""

    messages: list[bytes] = field(default_factory=list)
    expected: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    lsn: int = 0x1000
    index: int = 0

    def begin(self) -> None:
        self.lsn += 0x100
        self.index = 0
        self.messages.append(struct.pack(">cQQI", b"B", self.lsn, 777, 4_000_000_000))

    def commit(self) -> None:
        end = self.lsn + 0x30
        self.messages.append(struct.pack(">cBQQQ", b"C", 0, self.lsn, end, 777))

    def row(self, relid: int, op: str, marker: str, old: list[Value], new: list[Value]) -> None:
        letter = {"c": b"I", "u": b"U", "d": b"D"}[op]
        text = letter + struct.pack(">I", relid)
        if op != "c" and marker != "-":
            text += marker.encode() + _tuple(old)
        if op != "d":
            text += b"N" + _tuple(new)
        self.messages.append(text)
        self._expect(relid, op, marker if op != "c" else "-", old, new)

    def truncate(self, relids: list[int]) -> None:
        text = struct.pack(f">cIB{len(relids)}I", b"T", len(relids), 0, *relids)
        self.messages.append(text)
        for relid in relids:
            self._expect(relid, "t", "-", [], [])

    def _expect(self, relid: int, op: str, marker: str, old: list[Value], new: list[Value]) -> None:
        self.index += 1
        if NAMES[relid] == "ignored":
            return
        filled = list(new)
        if op == "u" and marker != "-":
            for slot, value in enumerate(new):
                known = marker == "O" or old[slot] is not None
                if value == UNCHANGED and known:
                    filled[slot] = old[slot]
        key = None
        if op != "t":
            key = [old[0] if marker != "-" else filled[0]]
        unchanged = [slot for slot, value in enumerate(filled) if value == UNCHANGED]
        self.expected.setdefault(f"public.{NAMES[relid]}", []).append(
            {
                "position": lsn_place(self.lsn, self.index),
                "op": op,
                "key": key,
                "before": old if marker == "O" else None,
                "after": [None if v == UNCHANGED else v for v in filled]
                if op in ("c", "u")
                else None,
                "unchanged": unchanged or None if op in ("c", "u") else None,
            }
        )


NAMES = {1: "a", 2: "b", 3: "ignored"}
TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    script = Script()
    for relid, name in NAMES.items():
        script.messages.append(_relation(relid, name))
    for _ in range(draw(st.integers(0, 5))):
        script.begin()
        for _ in range(draw(st.integers(0, 6))):
            if draw(st.integers(0, 7)) == 0:
                script.truncate(draw(st.lists(st.sampled_from([1, 2, 3]), min_size=1, unique=True)))
                continue
            op = draw(st.sampled_from("cud"))
            marker = draw(st.sampled_from("KO")) if op == "d" else draw(st.sampled_from("-KO"))
            old: list[Value] = [draw(TEXTS)]
            rest = st.one_of(st.none(), TEXTS) if marker == "O" else st.none()
            old += [draw(rest) for _ in range(COLUMNS - 1)]
            allowed = st.one_of(st.none(), TEXTS, st.just(UNCHANGED)) if op == "u" else TEXTS
            new: list[Value] = [draw(TEXTS)] + [draw(allowed) for _ in range(COLUMNS - 1)]
            script.row(draw(st.sampled_from([1, 2, 3])), op, marker, old, new)
        script.commit()
    return script


@given(scripts(), st.integers(1, 7))
@settings(max_examples=200, deadline=None)
def test_columns_and_values_agree_however_the_stream_is_cut(script: Script, size: int) -> None:
    decoder = Decoder("e", _schema)
    found: dict[str, list[dict[str, Any]]] = {}
    transactions = 0
    for at in range(0, len(script.messages), size):
        decoded = decoder.decode(script.messages[at : at + size])
        decoded.rows.validate(full=True)
        transactions += decoded.transactions
        for row in decoded.rows.to_pylist():
            names = ("position", "op", "key", "before", "after", "unchanged")
            found.setdefault(row["table"], []).append({name: row[name] for name in names})
    assert found == script.expected
    assert transactions == sum(message[:1] == b"C" for message in script.messages)


def test_event_ids_are_the_same_on_every_re_read_and_differ_between_events() -> None:
    script = Script(messages=[_relation(1, "a")])
    script.begin()
    for n in range(1000):
        script.row(1, "c", "-", [], [str(n), "x", None])
    script.commit()
    whole = Decoder("e", _schema).decode(script.messages).rows["event_id"].to_pylist()
    again = Decoder("e", _schema)
    parts = [again.decode([message]).rows["event_id"].to_pylist() for message in script.messages]
    assert whole == [event for part in parts for event in part]
    assert len(set(whole)) == 1000
    other = Decoder("another", _schema).decode(script.messages).rows["event_id"].to_pylist()
    assert not set(whole) & set(other)


def test_a_changed_description_applies_from_its_place_on() -> None:
    script = Script(messages=[_relation(1, "a")])
    script.begin()
    script.row(1, "c", "-", [], ["1", "x", None])
    wider = _relation(1, "a").replace(b"c2", b"cX")
    script.messages.append(wider)
    script.row(1, "c", "-", [], ["2", "y", None])
    script.commit()
    decoded = Decoder("e", _schema).decode(script.messages)
    ids = decoded.rows["schema_id"].to_pylist()
    assert len(set(ids)) == 2
    assert [seen.schema.schema_id for seen in decoded.schemas] == ids


def test_rows_of_a_table_that_has_another_name_are_told_where_they_begin() -> None:
    script = Script(messages=[_relation(3, "ignored")])
    script.begin()
    script.row(3, "c", "-", [], ["1", "x", None])
    script.commit()
    away = _relation(3, "ignored").replace(b"c2", b"cX")
    script.begin()
    script.row(3, "c", "-", [], ["2", "y", None])
    script.messages.append(away)
    script.row(3, "c", "-", [], ["3", "y", None])
    script.commit()
    ours = TableId("public", "a")
    decoder = Decoder("e", _schema, floor=script.lsn, astray=lambda message: ours)
    decoded = decoder.decode(script.messages)
    assert decoded.rows.num_rows == 0
    assert decoded.astray == ((ours, Position("e", lsn_place(script.lsn, 1))),)  # the first is old
    assert decoder.decode([]).astray == ()


def test_a_change_of_an_undescribed_table_is_refused() -> None:
    script = Script()
    script.begin()
    script.row(1, "c", "-", [], ["1", "x", None])
    with pytest.raises(FatalError) as caught:
        Decoder("e", _schema).decode(script.messages)
    assert caught.value.code == "capture.unknown_relation"


def test_values_that_are_too_large_are_left_out_and_named() -> None:
    script = Script()
    script.messages.append(_relation(1, "a"))
    script.begin()
    large, fits = "x" * 11, "x" * 10
    script.row(1, "c", "-", ["k"] + [None] * (COLUMNS - 1), ["k", large] + [fits] * (COLUMNS - 2))
    # With a whole old row, what was not sent is taken from there, even that it was too large.
    old: list[Value] = ["k", large] + [fits] * (COLUMNS - 2)
    script.row(1, "u", "O", old, ["k", UNCHANGED] + [None] * (COLUMNS - 2))
    script.commit()
    rows = Decoder("e", _schema, max_value_bytes=10).decode(script.messages).rows.to_pylist()
    assert [row["unchanged"] for row in rows] == [[-2], [-2]]
    assert [row["after"][:3] for row in rows] == [["k", None, fits], ["k", None, None]]
    assert rows[1]["before"][:3] == ["k", None, fits]


def test_an_old_row_without_a_key_is_whole_or_not_there() -> None:
    def keyless(message: RelationMessage) -> TableSchema | None:
        schema = _schema(message)
        return schema and replace(
            schema, columns=tuple(replace(column, key=None) for column in schema.columns)
        )

    script = Script()
    script.messages.append(_relation(1, "a"))
    script.begin()
    rest: list[Value] = ["x"] * (COLUMNS - 1)
    script.row(1, "u", "O", ["large" * 3, *rest], ["k", *rest])
    script.row(1, "d", "O", ["k", *rest], [])
    script.commit()
    rows = Decoder("e", keyless, max_value_bytes=10).decode(script.messages).rows.to_pylist()
    assert [row["before"] for row in rows] == [None, ["k", *rest]]
    assert [row["unchanged"] for row in rows] == [None, None]
