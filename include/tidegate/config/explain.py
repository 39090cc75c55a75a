"""Pydantic's errors in our words: place, what was found, what is allowed, the nearest key."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tidegate.config.base import Section, WrongTogether
from tidegate.config.document import Document
from tidegate.config.keys import keys, section_at
from tidegate.config.problems import MOST_TOLD, KeyPath, Problem, describe, kind_of

_ALLOWED: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "enum": lambda ctx: str(ctx["expected"]).replace("'", ""),
    "literal_error": lambda ctx: str(ctx["expected"]).replace("'", ""),
    "greater_than": lambda ctx: f"more than {ctx['gt']}",
    "greater_than_equal": lambda ctx: f"{ctx['ge']} or more",
    "less_than": lambda ctx: f"less than {ctx['lt']}",
    "less_than_equal": lambda ctx: f"{ctx['le']} or less",
    "string_pattern_mismatch": lambda ctx: f"text like {ctx['pattern']}",
    "string_too_short": lambda ctx: f"at least {ctx['min_length']} character(s)",
    "string_type": lambda ctx: "text; quote it if it looks like a number or true/false",
    "int_type": lambda ctx: "a whole number",
    "int_parsing": lambda ctx: "a whole number",
    "int_from_float": lambda ctx: "a whole number",
    "float_type": lambda ctx: "a number",
    "float_parsing": lambda ctx: "a number",
    "bool_type": lambda ctx: "true or false",
    "bool_parsing": lambda ctx: "true or false",
    "tuple_type": lambda ctx: "a list; remove the key if there is nothing to list",
    "dict_type": lambda ctx: "a mapping; remove the key if there is nothing to map",
    "model_type": lambda ctx: "a mapping of keys",
    "model_attributes_type": lambda ctx: "a mapping of keys",
}
_WHOLE_SECTIONS: Final = frozenset(
    {"tuple_type", "dict_type", "model_type", "model_attributes_type"}
)
_NEAREST_CUTOFF: Final = 0.6
"""difflib's own default: closer misses typing errors, wider suggests unrelated keys."""


class Explainer:
    """Turns one document's validation errors into problems.

    ``other`` is the model of the other file, so that a key in the wrong file is recognised.
    """

    def __init__(
        self,
        document: Document,
        root: type[Section],
        other: type[Section],
        written: Mapping[KeyPath, str],
    ) -> None:
        self._document = document
        self._root = root
        self._other = other
        self._written = written

    def problems(self, error: ValidationError) -> list[tuple[KeyPath, Problem]]:
        """One entry per thing that is wrong, with the path to correct."""
        found: list[tuple[KeyPath, Problem]] = []
        for details in error.errors(include_url=False)[: MOST_TOLD + 1]:
            path = self._path(details)
            cause = details.get("ctx", {}).get("error")
            if isinstance(cause, WrongTogether):
                for issue in cause.issues[: MOST_TOLD + 1]:
                    at = (*path, *issue.path)
                    found.append((at, self._document.problem(at, issue.message)))
            else:
                found.append((path, self._one(details, path)))
        return found

    def _path(self, details: ErrorDetails) -> KeyPath:
        # Pydantic marks a wrong key of a mapping by an extra "[key]".
        return tuple(part for part in details["loc"] if part != "[key]")

    def _one(self, details: ErrorDetails, path: KeyPath) -> Problem:
        kind, context = details["type"], details.get("ctx", {})
        if kind == "extra_forbidden":
            return self._unknown(path)
        if kind == "missing":
            return self._document.problem(path, "a required key is missing", found="nothing")
        if path == ("version",):
            return self._version(path)
        value = self._value(path)
        if kind in _WHOLE_SECTIONS:  # text where a section belongs may be anything: not shown (I9)
            found = kind_of(value)
        else:
            found = describe(value, path, self._written.get(path))
        if kind == "value_error":
            message = str(context.get("error", details["msg"]))
            return self._document.problem(path, message, found=found)
        wording = _ALLOWED.get(kind)
        allowed = details["msg"] if wording is None else wording(context)
        return self._document.problem(path, "wrong value", found=found, allowed=allowed)

    def _value(self, path: KeyPath) -> Any:
        value: Any = self._document.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return part  # the error is about a mapping's key, not about its value
        return value

    def _version(self, path: KeyPath) -> Problem:
        from tidegate import __version__

        return self._document.problem(
            path,
            f"Tidegate {__version__} does not read this version of the file",
            found=describe(self._value(path), path),
            allowed="1; a file of a later version needs the release that wrote it",
        )

    def _unknown(self, path: KeyPath) -> Problem:
        name = str(path[-1])
        section = section_at(self._root, path[:-1])
        known = list(section.model_fields) if section else []
        message, nearest = "unknown key", _nearest(name, known)
        if nearest is None:
            elsewhere = self._elsewhere(name)
            if elsewhere is not None:
                message, nearest = elsewhere
        return self._document.problem(
            path, message, found=f"the key {name}", allowed=", ".join(known), nearest=nearest
        )

    def _elsewhere(self, name: str) -> tuple[str, str] | None:
        """Where a key that is right in another place belongs."""
        for model in (self._root, self._other):
            for key in keys(model):
                if key.name == name:
                    file = file_kind(model)
                    where = "to another section" if model is self._root else f"to {file}"
                    return f"the key belongs {where}", f"{key.path} in {file}"
        close = _nearest(name, list(self._other.model_fields))
        if close is None:
            return None
        return f"unknown key; {file_kind(self._other)} has a similar one", close


def file_kind(model: type[Section]) -> str:
    """``pipeline.yaml`` or ``platform.yaml``."""
    return "pipeline.yaml" if "pipeline_id" in model.model_fields else "platform.yaml"


def _nearest(name: str, known: list[str]) -> str | None:
    folded = {key.lower(): key for key in known}
    close = difflib.get_close_matches(
        name.lower().replace("-", "_"), list(folded), n=1, cutoff=_NEAREST_CUTOFF
    )
    return folded[close[0]] if close else None
