"""``${VAR}``, ``${VAR:-default}`` and ``$$`` in configuration values.

As in a shell, ``:-`` takes the default when the variable is unset or empty. Substitution looks at
text values only, after the YAML is read: a variable can never add keys, and what it holds is always
text, which number and true/false keys parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.config.problems import KeyPath

_TOKEN: Final = re.compile(
    r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]{0,1000}))?\}"
    r"|(?P<broken>\$\{)"
)
"""A default has an end: or looking for that of each of many would take minutes."""
_SECRET_KEYS: Final = frozenset({"password", "token"})
"""Keys typed SecretStr: left as written when secrets are not to be resolved."""


@dataclass(slots=True)
class Substituted:
    """Data after substitution, and how it came about."""

    data: Any
    written: dict[KeyPath, str] = field(default_factory=dict)  # text before, where it had variables
    missing: dict[KeyPath, tuple[str, ...]] = field(default_factory=dict)  # unset, without default
    broken: list[KeyPath] = field(default_factory=list)  # ${ that is no variable
    unresolved: set[KeyPath] = field(default_factory=set)  # kept as written on purpose


def substitute(data: Any, environ: Mapping[str, str], *, resolve_secrets: bool) -> Substituted:
    """Replace variables in every text value of ``data``.

    With ``resolve_secrets=False`` secret keys, and variables that are not set, keep their text:
    Dag parsing needs names and schedules, never passwords, and must not fail for want of one.
    """
    result = Substituted(None)

    def walk(value: Any, path: KeyPath) -> Any:
        if isinstance(value, dict):
            return {key: walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and "$" in value:
            return _text(value, path, environ, resolve_secrets, result)
        return value

    result.data = walk(data, ())
    return result


def variables(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Every variable that ``data`` names, with where."""
    if isinstance(data, dict):
        for key, item in data.items():
            yield from variables(item, (*path, key))
    elif isinstance(data, list):
        for index, item in enumerate(data):
            yield from variables(item, (*path, index))
    elif isinstance(data, str):
        yield from ((path, found["name"]) for found in _TOKEN.finditer(data) if found["name"])


def _text(
    text: str, path: KeyPath, environ: Mapping[str, str], resolve: bool, result: Substituted
) -> str:
    names = [match["name"] for match in _TOKEN.finditer(text) if match["name"]]
    if any(match["broken"] for match in _TOKEN.finditer(text)):
        result.broken.append(path)
        return text
    if names:
        result.written[path] = text
    if names and not resolve and path[-1] in _SECRET_KEYS:
        result.unresolved.add(path)
        return text
    missing = tuple(
        match["name"]
        for match in _TOKEN.finditer(text)
        if match["name"] and match["default"] is None and match["name"] not in environ
    )
    if missing:
        if resolve:
            result.missing[path] = missing
        else:
            result.unresolved.add(path)
        return text
    return _TOKEN.sub(lambda match: _one(match, environ), text)


def _one(match: re.Match[str], environ: Mapping[str, str]) -> str:
    if match["name"] is None:
        return "$"
    value = environ.get(match["name"], "")
    return match["default"] if not value and match["default"] is not None else value
