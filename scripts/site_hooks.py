"""MkDocs hook: a link out of docs/ into the repository becomes the file's name on the site.

In the repository such a link is followed; the site has only docs/. That the file exists is checked
by tests/contract/cli/test_documented_commands.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for each page before it is rendered."""
    folder = (DOCS / page.file.src_path).parent

    def kept_or_named(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        path = (folder / target).resolve()
        if "://" in target or path.is_relative_to(DOCS):
            return found[0]
        return f"{text} (`{path.relative_to(ROOT)}`)"

    return _LINK.sub(kept_or_named, markdown)
