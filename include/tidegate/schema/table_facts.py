"""What a source's catalog tells of changes that send no row events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table as its catalog has it now. Names of the schema only, never a row's value (I9)."""

    relation: int | None  # None: there is no such table
    name_now: str | None = None  # of the table that was known, where it is called otherwise now
    filled: tuple[str, ...] = ()  # columns that old rows have by a default which was never sent
    defaults: tuple[str, ...] = ()  # columns with a default
    labels: Mapping[str, str] = field(default_factory=dict)  # enum labels by the source's number
    partitions: Mapping[str, str] = field(default_factory=dict)  # leaves by the source's number

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableFacts:
        return cls(
            relation=data["relation"],
            name_now=data["name_now"],
            filled=tuple(data["filled"]),
            defaults=tuple(data["defaults"]),
            labels=data["labels"],
            partitions=data["partitions"],
        )
