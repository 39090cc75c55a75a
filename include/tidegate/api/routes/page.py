"""The browser page: files that everybody may have. What it shows, it asks the API for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse

from tidegate.api.access import Role, needs

router = APIRouter(include_in_schema=False)
STATIC: Final = Path(__file__).resolve().parent.parent / "static"
_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".md": "text/plain",
    ".svg": "image/svg+xml",
}
"""Not the machine's own table: with ``nosniff`` a module of another type is refused."""
_ALWAYS_ASK: Final = {"cache-control": "no-cache"}
"""An upgrade is seen at once; unchanged files are answered with 304."""


@router.get("/")
@needs(Role.PUBLIC)
def get_page() -> FileResponse:
    """The page itself. Its addresses are relative: it works under any base path."""
    return _file("index.html")


@router.get("/static/{path:path}")
@needs(Role.PUBLIC)
def get_static(path: str) -> FileResponse:
    """A script, a style sheet, an image, a licence."""
    return _file(path)


def _file(path: str) -> FileResponse:
    # Looked up, not opened: a path from outside never reaches the file system.
    file = _files().get(path)
    if file is None:
        raise HTTPException(404, "there is no such file")
    return FileResponse(file, media_type=_TYPES[file.suffix], headers=_ALWAYS_ASK)


@cache
def _files() -> dict[str, Path]:
    """What there is, by its path."""
    found = (file for file in STATIC.rglob("*") if file.suffix in _TYPES and file.is_file())
    return {file.relative_to(STATIC).as_posix(): file for file in found}
