"""The pipelines folder: one file per pipeline, found by name or by path.

``TIDEGATE_PIPELINES_DIR``, else ``include/config/pipelines`` of the project (for the command line:
of the working directory). Airflow makes Dags from the same files.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidegate.config.document import read_document
from tidegate.errors import ConfigError, TidegateError

PIPELINES_VARIABLE: Final = "TIDEGATE_PIPELINES_DIR"
CONFIG_DIR: Final = Path("include", "config")
SUFFIXES: Final = frozenset({".yaml", ".yml"})


def pipelines_dir(project: Path = Path()) -> Path:
    """``TIDEGATE_PIPELINES_DIR``, or ``include/config/pipelines`` of the project."""
    named = os.environ.get(PIPELINES_VARIABLE)
    return Path(named) if named else project / CONFIG_DIR / "pipelines"


def pipeline_files(folder: Path) -> list[Path]:
    """The folder's pipeline files. A folder that is not there is an error: a misspelt one would
    otherwise look like one without pipelines."""
    if not folder.is_dir():
        raise ConfigError(
            "config.no_folder",
            f"there is no pipelines folder {folder}",
            hint=f"`tidegate create FILE` makes it; {PIPELINES_VARIABLE} names another one",
        )
    return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)


def find_pipeline(wanted: Path | str, folder: Path | None = None) -> Path:
    """The file that is meant: a path as it is, a plain name looked up in the folder.

    A file of that very name in the working directory wins over the folder's.
    """
    path, name = Path(wanted), str(wanted)
    if path.is_file() or path.suffix in SUFFIXES or len(path.parts) != 1:
        return path
    folder = pipelines_dir() if folder is None else folder
    known = dict(_named(folder))
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(
        "config.pipeline_unknown",
        f"there is no pipeline {name} in {folder}",
        hint=f"{guess}`tidegate list` shows those there are; a file is named by its path",
    )


def _named(folder: Path) -> Iterator[tuple[str, Path]]:
    """Pipelines by their id. A file too broken to say its id goes by its own name."""
    for file in reversed(pipeline_files(folder)):  # of two with one id, the first counts
        yield declared_id(file) or file.stem, file


def declared_id(file: Path) -> str | None:
    """The ``pipeline_id`` a file claims, right or not."""
    try:
        data = read_document(file).data
    except (TidegateError, OSError):
        return None
    found = data.get("pipeline_id") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None
