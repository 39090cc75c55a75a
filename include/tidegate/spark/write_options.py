"""How files of a lake table are written when speed counts; compaction rewrites them later."""

from __future__ import annotations

from typing import Final

from tidegate.config.pipeline import LakeTarget

LEVEL_PROPERTY: Final = "write.parquet.compression-level"
FAST_LEVEL: Final = "1"
"""Zstandard's level 3, Iceberg's default, costs a fifth of a whole sweep for a few per cent of
size; compaction rewrites at the table's own level."""


def write_options(target: LakeTarget, *, in_key_order: bool) -> dict[str, str]:
    """Options of one append. ``in_key_order``: the rows of every file lie by key already, which is
    what merges prune by, so the default order asks for no sort. All else follows the table."""
    options = {}
    if LEVEL_PROPERTY not in target.properties:
        options["compression-level"] = FAST_LEVEL
    if in_key_order and not (target.partition_by or target.sort_by):
        options["use-table-distribution-and-ordering"] = "false"
    return options
