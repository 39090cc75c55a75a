"""The keys a configuration model has: walked once, used by error messages and by the reference."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from tidegate.config.base import Section
from tidegate.config.problems import KeyPath


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a file, with the section it stands in."""

    path: str  # sinks[].iceberg.tables.<table>.write_mode
    section: type[Section]
    name: str
    field: FieldInfo
    nested: type[Section] | None  # the section its value is, or holds
    into: str = ""  # how a path goes on into that section


def keys(root: type[Section], prefix: str = "") -> Iterator[Key]:
    """Every key under ``root``, depth first, in the order of the models."""
    for name, field in root.model_fields.items():
        path = f"{prefix}.{name}" if prefix else name
        nested, suffix = _nested(field.annotation)
        yield Key(path, root, name, field, nested, suffix)
        if nested is not None:
            yield from keys(nested, path + suffix)


def section_at(root: type[Section], path: KeyPath) -> type[Section] | None:
    """The section that stands at ``path``, or None where the models know none."""
    section = root
    for part in path:
        if isinstance(part, int) or part not in section.model_fields:
            continue  # a list index, or the name in a mapping of sections
        nested, _ = _nested(section.model_fields[part].annotation)
        if nested is None:
            return None
        section = nested
    return section


def _nested(annotation: Any) -> tuple[type[Section] | None, str]:
    """The section inside an annotation, and how a path goes into it."""
    origin = get_origin(annotation)
    if origin is None:
        found = isinstance(annotation, type) and issubclass(annotation, Section)
        return (annotation, "") if found else (None, "")
    arguments = get_args(annotation)
    if origin in (Union, types.UnionType):
        for argument in arguments:
            section, suffix = _nested(argument)
            if section is not None:
                return section, suffix
        return None, ""
    if origin is tuple:
        section, _ = _nested(arguments[0])
        return section, "[]"
    if origin is dict:
        section, _ = _nested(arguments[1])
        return section, ".<column>" if arguments[0] is str else ".<table>"
    return None, ""
