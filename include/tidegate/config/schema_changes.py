"""``schema_changes`` and ``compatibility``: what a change of the source's columns leads to."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from tidegate.config.base import Section

Answer = Literal["evolve", "hold", "ignore"]


class Compatibility(StrEnum):
    """What a new schema must be to those before it; see ``schema/compatibility.py``."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def backward(self) -> bool:
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        return self.value.startswith(("FORWARD", "FULL"))

    @property
    def transitive(self) -> bool:
        return self.value.endswith("_TRANSITIVE")


class SchemaChanges(Section):
    """By kind of change. evolve: the lake follows; hold: the table waits for `tidegate schema
    approve`; ignore: the lake stays as it is."""

    add: Answer = Field(
        "evolve", description="A new column. ignore: the lake does not take its values."
    )
    widen: Answer = Field(
        "evolve",
        description="A type that holds more. ignore: the lake keeps its type, and values that do"
        " not fit cannot be applied.",
    )
    rename: Literal["evolve", "hold"] = Field(
        "evolve",
        description="Another name of a column. evolve: the lake's column keeps its field id; held"
        " all the same where a rename cannot be told from a drop and an add.",
    )
    relax: Answer = Field("evolve", description="A column that may be null from now on.")
    drop: Answer = Field(
        "evolve",
        description="A column that left. The lake always keeps it, with its history; rows written"
        " since have null there.",
    )
    narrow: Answer = Field(
        "hold", description="A type that holds less. The lake always keeps the wider one."
    )
    retype: Answer = Field(
        "hold",
        description="A type that the lake's column cannot hold, or a column dropped and added"
        " again. evolve: the old column is kept under another name and a new one begins; ignore:"
        " the lake's column takes no more values.",
    )
    key: Literal["hold"] = Field("hold", description="Another key: other rows. Always held.")
    recreate: Literal["hold", "ignore"] = Field(
        "hold",
        description="A table that was dropped, made anew or renamed for a while: what it lost, or"
        " got under another name, was never sent. Held until the table is swept.",
    )
    rewrite: Literal["hold", "ignore"] = Field(
        "hold",
        description="`ALTER … USING`, which may give old rows other values; without the event"
        " trigger (source.ddl_messages) any ALTER that rewrites the table. Held until the table is"
        " swept.",
    )
    partitions: Literal["hold", "ignore"] = Field(
        "hold",
        description="A partition that was attached with rows, detached, dropped or emptied by"
        " itself. Held until the table is swept; ignore: the lake's rows stay as they are.",
    )
    enum_rename: Literal["hold", "ignore"] = Field(
        "hold",
        description="Another word for an enum value. Held until the table is swept; ignore: rows"
        " that do not change keep the old word.",
    )
