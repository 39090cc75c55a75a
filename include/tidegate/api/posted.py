"""Pipeline files that come over HTTP: what they may ask of the server's environment.

A file's author chooses the host that is logged in to. If they could also name any variable, or a
connection without a host of its own, the server would carry its secrets there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tidegate.config.document import Document, read_document
from tidegate.config.problems import ConfigProblems, Problem
from tidegate.config.substitution import variables

ALLOWED_VARIABLE: Final = "TIDEGATE_API_VARIABLES"
"""Names or patterns, with commas between: those that posted files may use."""
DEFAULT: Final = ("TIDEGATE_SOURCE_*",)
"""Nothing else is called so: whoever sets one means it for pipelines."""


def allowed_variables() -> tuple[str, ...]:
    """As the environment says, else the default."""
    given = [name.strip() for name in os.environ.get(ALLOWED_VARIABLE, "").split(",")]
    return tuple(name for name in given if name) or DEFAULT


def check(file: Path, allowed: Iterable[str]) -> None:
    """Refuse what a posted file may not ask for, whether its source is asked now or later."""
    document = read_document(file)
    problems = [*_variables(document, tuple(allowed)), *_host_of_connection(document)]
    if problems:
        raise ConfigProblems(problems)


def _variables(document: Document, allowed: tuple[str, ...]) -> Iterator[Problem]:
    for path, name in variables(document.data):
        if not any(fnmatchcase(name, pattern) for pattern in allowed):
            yield document.problem(
                path,
                f"a file that comes over HTTP may not use the server's variable {name}",
                allowed=f"{', '.join(allowed)}; {ALLOWED_VARIABLE} of the server says which",
            )


def _host_of_connection(document: Document) -> Iterator[Problem]:
    source = document.data.get("source")
    if isinstance(source, dict) and source.get("connection_id") is not None:
        for key in sorted({"host", "port"} & set(source)):
            yield document.problem(
                ("source", key),
                "a file that comes over HTTP may not say where a connection's password goes",
                allowed="nothing: the connection brings its own host and port",
            )
