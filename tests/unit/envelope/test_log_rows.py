"""Positions and event ids by the column equal those made one by one."""

from __future__ import annotations

import uuid

import numpy as np

from tidegate.envelope import log_rows
from tidegate.envelope.position import lsn_place

LSNS = np.array([0, 1, 0x16B374D848, 2**63 + 5, 2**64 - 1], dtype=np.uint64)
INDEXES = np.array([0, 1, 2**40 - 1, 7, 8], dtype=np.uint64)
PINNED = "dfb80da2-fb0a-845b-b75b-d969b27ef3c8"


def test_places_are_the_positions_text() -> None:
    expected = [lsn_place(int(a), int(b)) for a, b in zip(LSNS, INDEXES, strict=True)]
    assert log_rows.places(LSNS, INDEXES).to_pylist() == expected


def test_event_ids_are_stable_valid_and_differ_by_epoch_and_place() -> None:
    one = log_rows.event_ids("e1", LSNS, INDEXES).to_pylist()
    assert one == log_rows.event_ids("e1", LSNS, INDEXES).to_pylist()
    assert all(uuid.UUID(text).version == 8 for text in one)
    assert not set(one) & set(log_rows.event_ids("e2", LSNS, INDEXES).to_pylist())
    # Pinned: ids that were stored once must come out the same for ever.
    assert one[2] == PINNED


def test_neighbours_never_share_an_id() -> None:
    lsns = np.repeat(np.arange(1000, dtype=np.uint64), 100)
    indexes = np.tile(np.arange(100, dtype=np.uint64), 1000)
    assert len(set(log_rows.event_ids("e", lsns, indexes).to_pylist())) == 100_000


def test_no_rows_make_empty_columns() -> None:
    none = LSNS[:0]
    assert len(log_rows.places(none, none)) == 0
    assert len(log_rows.event_ids("e", none, none)) == 0
    assert log_rows.empty().schema == log_rows.ARROW_SCHEMA
