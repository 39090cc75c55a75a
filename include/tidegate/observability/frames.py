"""Where in the code something happened. Files, lines and functions; never a value (I9)."""

from __future__ import annotations

import traceback
from typing import Final

_PACKAGE: Final = "/tidegate/"
"""Frames of libraries say little, and their paths are this machine's."""


def code_frames(error: BaseException | None = None) -> str:
    """Tidegate's own frames, innermost last: of ``error``'s way up to here, or of the way here."""
    here = traceback.extract_stack()[:-1]
    found = traceback.extract_tb(error.__traceback__) if error is not None else here
    return "\n".join(
        f"tidegate/{frame.filename.rpartition(_PACKAGE)[2]}:{frame.lineno} in {frame.name}"
        for frame in found
        if _PACKAGE in frame.filename
    )
