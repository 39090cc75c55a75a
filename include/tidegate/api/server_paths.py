"""Answers name files as a caller may know them, not where they lie on the server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class ServerPaths:
    """Knows the folders that are the server's own: what lies below is told by its name."""

    def __init__(self, folders: Iterable[Path | str]) -> None:
        known = {
            str(place) for folder in folders for place in (Path(folder), Path(folder).resolve())
        }
        own = sorted((re.escape(one) for one in known if len(Path(one).parts) > 1), key=len)
        # The longest first: folders lie in one another.
        self._below = re.compile(
            rf"(?:{'|'.join(own[::-1]) or '(?!)'})(?![\w.-])(?:/[^\s/:;,'\"]+)*"
        )

    def hidden(self, value: Any) -> Any:
        """``value`` with every text in it told so."""
        if isinstance(value, str):
            return self._below.sub(lambda found: Path(found[0]).name, value)
        if isinstance(value, dict):
            return {key: self.hidden(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hidden(one) for one in value]
        return value
