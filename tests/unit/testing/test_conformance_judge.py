"""What a case's tables are compared by."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.testing.conformance.judge import _state


def rows(*changes: tuple[str, str]) -> pa.Table:
    ops, values = [op for op, _ in changes], [value for _, value in changes]
    return pa.table({"v": pa.array(values, pa.string()), "_cdc_op": pa.array(ops, pa.string())})


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ([], 0),
        ([("t", "")], 0),
        ([("c", "1"), ("u", "2"), ("d", "2"), ("r", "3")], 3),
    ],
)
def test_of_an_append_table_every_row_that_was_put_counts(
    changes: list[tuple[str, str]], left: int
) -> None:
    assert len(_state(rows(*changes), "append")) == left
