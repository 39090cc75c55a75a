"""A mark: by which a source tells later which rows of a table have changed since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mark:
    """A table's rows at one cut. Holds no row value (I9)."""

    line: str
    """The history the rows belong to: a source that was failed over has another one."""
    version: int
    """Versions of rows that are older than this were there at the cut, and never change."""
    shape: str
    """Digest of the table's catalog entry: with another one, old versions may mean other rows."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Mark:
        return cls(data["line"], data["version"], data["shape"])
