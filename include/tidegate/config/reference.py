"""The configuration reference, written from the models: it cannot drift from what is accepted."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from tidegate.config.base import Section
from tidegate.config.keys import Key, keys
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig

_INTRODUCTION = """\
# Configuration

<!-- Written by `python docs/generate.py` from the models in tidegate.config. Do not edit. -->

Two files, strictly apart: `pipeline.yaml` says what is taken and where it goes, `platform.yaml`
says what it runs on. `tidegate validate` answers a wrong file with every problem at once: file,
line, path, what was found, what is allowed and the nearest right key.

## Values from the environment

| written | becomes |
|---|---|
| `${VAR}` | the variable; a problem if it is not set |
| `${VAR:-default}` | the variable, or `default` if it is not set or empty |
| `$$` | a single `$` |

Variables are replaced in values, never in keys, after the YAML is read. Problems show the text of
the file, never a variable's value; values under keys such as `password`, `headers` or `properties`
are not shown at all.

## How large a file may be

Anchors, aliases and merge keys (`<<`) work as in any YAML. A file has up to a million bytes,
100,000 values (those behind an alias counted each time it is used) and 40 levels; what passes a
bound is refused with its line.

## Which platform file

The path given by `--platform-config`, else `TIDEGATE_PLATFORM_FILE`, else `./platform.yaml`, else
`./include/config/platform.yaml`, else the defaults below. Relative local paths in it (`lake.home`,
`lake.warehouse`, a SQLite `lake.catalog.uri`, `schema_registry.ca_file`) are relative to the file,
without a file to the working directory. `source.sslrootcert` is relative to the pipeline's file.

## Secrets

`source.connection_id` names an Airflow connection that replaces host, port, username and password.
Under Airflow it is read from the secrets backend when a task runs. The command line reads
`AIRFLOW_CONN_<ID>` (JSON or URI). Otherwise write `password: ${VAR}`; so for
`schema_registry.password` and `schema_registry.token`.
"""


def reference() -> str:
    """``docs/reference/configuration.md``."""
    parts = [_INTRODUCTION]
    for title, model in (("pipeline.yaml", PipelineConfig), ("platform.yaml", PlatformConfig)):
        parts.append(f"## `{title}`\n")
        parts += _sections(model)
    return "\n".join(parts).rstrip() + "\n"


def _sections(root: type[Section]) -> Iterator[str]:
    yield _table("", root, [key for key in keys(root) if "." not in key.path])
    for key in keys(root):
        if key.nested is not None:
            prefix = key.path + key.into
            own = [k for k in keys(root) if k.path.rpartition(".")[0] == prefix]
            yield _table(prefix, key.nested, own)


def _table(path: str, section: type[Section], own: list[Key]) -> str:
    title = f"### `{path}`\n\n" if path else ""
    lines = [f"{title}{_first_paragraph(section)}\n", "| key | type | default | meaning |"]
    lines.append("|---|---|---|---|")
    lines += [f"| `{key.name}` | {_type(key)} | {_default(key)} | {_meaning(key)} |" for key in own]
    return "\n".join(lines) + "\n"


def _first_paragraph(section: type[Section]) -> str:
    text = (section.__doc__ or "").split("\n\n")[0]
    return " ".join(text.split()).replace("``", "`")


def _type(key: Key) -> str:
    bounds = _bounds(key)
    text = _name(key.field.annotation)
    return _escape(f"{text}, {bounds}" if bounds else text)


def _bounds(key: Key) -> str:
    words = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    found = [
        f"{sign} {_number(limit)}"
        for item in key.field.metadata
        for name, sign in words.items()
        if (limit := getattr(item, name, None)) is not None
    ]
    return ", ".join(found)


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"


def _name(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _name(arguments[0])
    if origin in (Union, types.UnionType):
        rest = [_name(a) for a in arguments if a is not type(None)]
        return " or ".join(rest) + (" or null" if type(None) in arguments else "")
    if origin is Literal:
        return " \\| ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_plural(_name(arguments[0]))}"
    if origin is dict:
        return f"mapping to {_name(arguments[1])}"
    return _simple_name(annotation)


def _simple_name(annotation: Any) -> str:
    if isinstance(annotation, type):
        if issubclass(annotation, enum.Enum):
            return " \\| ".join(f"`{member.value}`" for member in annotation)
        if issubclass(annotation, Section):
            return "section"
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names.get(annotation, "secret" if annotation is SecretStr else "anything")


def _plural(name: str) -> str:
    return {"text": "texts", "section": "sections"}.get(name, name)


def _default(key: Key) -> str:
    value = key.field.default
    if value is PydanticUndefined:
        return "*required*"
    if isinstance(value, Section):
        return "see below"
    return _shown(value).replace("|", "\\|")


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, SecretStr):
        return f"`{value.get_secret_value()}`"  # a documented default, not a secret
    if isinstance(value, enum.Enum):
        return f"`{value.value}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`[]`" if not value else f"`{list(value)}`"
    if isinstance(value, float) and value.is_integer():
        return f"`{value:.0f}`"
    return f"`{value}`"


def _meaning(key: Key) -> str:
    return _escape(key.field.description or "")


def _escape(text: str) -> str:
    return text.replace("\\|", "|").replace("|", "\\|").replace("<", "&lt;")
