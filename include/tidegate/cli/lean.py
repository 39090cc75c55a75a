"""What makes a short command short: most of its time is imports, and some of those are for nothing.

Only for the console script, whose process is one command's own.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

LOOKS: Final = frozenset(
    {
        "audit",
        "describe",
        "gate",
        "guard",
        "health",
        "lag",
        "list",
        "offsets",
        "start",
        "status",
        "stop",
    }
)
"""Verbs that look at the lake's metadata and a few small tables; none of them starts Spark."""
_OBJECTS: Final = 100_000
"""Imports make hundreds of thousands of objects that live as long as the process: looking for
garbage among them at every 700 takes a seventh of ``status`` (*measured*)."""


def prepare(words: Sequence[str]) -> None:
    """Before the command of ``words`` imports what it needs."""
    gc.set_threshold(_OBJECTS, 20, 50)
    verbs = [word for word in words if not word.startswith("-")][:2]
    if verbs and verbs[0] in LOOKS and verbs != ["offsets", "set"]:
        sys.meta_path.insert(0, _DatasetsWithoutPandas())


class _DatasetsWithoutPandas(MetaPathFinder):
    """PyArrow's datasets import pandas (300 modules, a quarter of ``status``, *measured*) only to
    ask whether the constants they make are pandas' own: they are told that there is none."""

    def __init__(self) -> None:
        self._hiding = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas" and self._hiding:
            raise ModuleNotFoundError(f"no module named {name} for now", name=name)
        if name == "pyarrow.dataset" and "pandas" not in sys.modules:
            self._hiding = True
            try:
                import_module("pyarrow._dataset")
            finally:
                self._hiding = False
        return None
