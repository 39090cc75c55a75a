"""PostgreSQL's text of a one-dimensional array: ``{1,NULL,"a \\"quoted\\" one"}``."""

from __future__ import annotations

import re
from typing import Final

_ELEMENT: Final = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^,{}"]+)', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def elements(text: str) -> list[str | None]:
    """The elements' texts; NULL is None. Bounds (``[2:3]={…}``) are dropped; a nested array is
    flattened in its own order."""
    body = text.partition("=")[2] if text.startswith("[") else text
    return [
        _ESCAPE.sub(r"\1", match["quoted"])
        if match["quoted"] is not None
        else (None if match["plain"] == "NULL" else match["plain"])
        for match in _ELEMENT.finditer(body)
    ]
