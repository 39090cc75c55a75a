"""Lists in pages. A cursor names the last item seen: new items do not shift the next page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from tidegate.errors import ConfigError

DEFAULT_LIMIT: Final = 50
MOST: Final = 500

Item = TypeVar("Item")
Limit = Annotated[int, Query(ge=1, le=MOST, description="Items at most.")]
Cursor = Annotated[
    str | None,
    Query(max_length=200, description="`next` of the page before; without it, the first page."),
]


class Page(BaseModel, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    next: str | None = Field(None, description="The next page's `cursor`; null: this is the last.")
    total: int = Field(description="Items of all pages.")


def page(
    items: Sequence[Item], name: Callable[[Item], str], limit: int, cursor: str | None
) -> Page[Item]:
    """The items after ``cursor``; ``name`` gives each item a lasting name."""
    start = 0
    if cursor is not None:
        names = [name(item) for item in items]
        if cursor not in names:
            raise ConfigError(
                "api.cursor",
                "the page before this one is no longer known",
                hint="begin again, without a cursor",
            )
        start = names.index(cursor) + 1
    shown = list(items[start : start + limit])
    more = start + limit < len(items)
    return Page(items=shown, next=name(shown[-1]) if shown and more else None, total=len(items))
