"""What of a configuration may be shown. One rule for the command line, the HTTP API, the page,
logging and errors (I9): keys are shown, values that may be secret are not.

Secret are values typed ``SecretStr``, values under keys that are called so (``token``), and the
values of free mappings, whose keys we do not know, unless :data:`_HARMLESS` lists them. Addresses
lose their user, password and query.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from tidegate.redaction import address, origin, redacted

KeyPath = tuple[str | int, ...]
"""Where a value stands: ``("sinks", 0, "webhook", "url")``."""
NOT_SHOWN: Final = "(not shown)"

_SECRET: Final = re.compile(
    r"password|passwd|secret|token|credential|api_?key|access_?key|private_?key|dsn\Z",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(r"(\A|_)(ur[il]|servers|warehouse|master)\Z")
_KEY_IN_PATH: Final = ("webhook", "url")
"""Whoever knows the path of such an address may post to it (Slack's, Teams')."""
_HARMLESS: Final[Mapping[str, re.Pattern[str]]] = {
    "headers": re.compile(r"accept|content-type|content-encoding|user-agent", re.IGNORECASE),
    "properties": re.compile(
        r"format-version|(write|read|commit|history|gc)\.[a-z.-]+"  # of tables
        r"|(s3|client)\.(endpoint|region)|s3\.path-style-access|io-impl|type"  # of catalogs
    ),
    "conf": re.compile(
        r"spark\.(executor\.(instances|memory|memoryOverhead|cores)|driver\.(memory|cores)"
        r"|cores\.max|sql\.shuffle\.partitions|(dynamicAllocation|sql\.adaptive)\.[A-Za-z.]+)"
    ),
    "kwargs": re.compile(r"column|column_[ABab]|column_(list|set)|mostly|(min|max)_value|type_"),
    "options": re.compile(r"(?!)"),  # a package's own: we know none of them
}
"""Free mappings by their key, and the keys in them whose values are no secret. A free mapping that
is not here shows no value at all."""


def shown(section: BaseModel) -> dict[str, Any]:
    """A section as JSON values."""
    return {name: _field(value, (name,)) for name, value in section}


def may_show(path: KeyPath) -> bool:
    """Whether a value at ``path`` of a file is surely no secret."""
    names = [part for part in path if isinstance(part, str)]
    if any(_SECRET.search(name) for name in names):
        return False
    for index, name in enumerate(names):
        if name in _HARMLESS:
            below = names[index + 1 :]
            return len(below) == 1 and _HARMLESS[name].fullmatch(below[0]) is not None
    return True


def shown_text(text: str, path: KeyPath) -> str:
    """Text at ``path``, if :func:`may_show`: without what an address in it would give away."""
    names = tuple(part for part in path if isinstance(part, str))
    if names[-2:] == _KEY_IN_PATH:
        return origin(text)
    return address(text) if names and _ADDRESS.search(names[-1]) else redacted(text)


def _field(value: Any, path: KeyPath) -> Any:
    if value is None:
        return None
    if isinstance(value, SecretStr):
        return NOT_SHOWN
    if isinstance(value, BaseModel):
        return {name: _field(one, (*path, name)) for name, one in value}
    if isinstance(value, (list, tuple)):
        return [_field(one, path) for one in value]
    if isinstance(value, Mapping):
        if value and all(isinstance(one, BaseModel) for one in value.values()):
            return {key: shown(one) for key, one in value.items()}  # a table may be called token
        return {key: _free(one, (*path, str(key))) for key, one in value.items()}
    return _plain(value, path)


def _free(value: Any, path: KeyPath) -> Any:
    """A value of a free mapping."""
    known = any(part in _HARMLESS for part in path)
    if isinstance(value, Mapping):
        return {key: _free(one, (*path, str(key))) for key, one in value.items()}
    return _field(value, path) if known and may_show(path) else NOT_SHOWN


def _plain(value: Any, path: KeyPath) -> Any:
    if not may_show(path):
        return NOT_SHOWN
    if isinstance(value, Enum):
        return value.value
    return shown_text(value, path) if isinstance(value, str) else value
