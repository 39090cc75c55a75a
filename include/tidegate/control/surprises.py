"""What a table's columns become in the lake that its owner would not expect, said before a sweep.

One finding per kind for all tables: a hundred tables of one application are mostly alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.config.pipeline import LakeTarget
from tidegate.connectors.protocol import Severity
from tidegate.control.findings import Finding
from tidegate.errors import ConfigError
from tidegate.lake.columns import check_names
from tidegate.names import several
from tidegate.schema.contract import contracted
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind

_NUMERIC: Final = re.compile(r"(numeric|decimal)\b")
_PADDED: Final = re.compile(r"character\(")
_INFO: Final = Severity.INFO.value


@dataclass(frozen=True, slots=True)
class _Kind:
    """Columns that are told of together."""

    code: str
    about: Callable[[Column, LakeTarget], bool]
    message: str
    fix: str | None = None


def _as_text(column: Column, target: LakeTarget) -> bool:
    options = target.options.columns.get(column.name)
    asked_for = options is not None and options.type is not None
    return (
        bool(_NUMERIC.match(column.source_type))
        and column.type.kind is Kind.STRING
        and not asked_for
    )


def _padded(column: Column, target: LakeTarget) -> bool:
    return bool(_PADDED.match(column.source_type)) and column.type.kind is Kind.STRING


_KINDS: Final = (
    _Kind(
        "lake.numeric_as_text",
        _as_text,
        "numbers that no decimal of the lake holds (no digits declared, or more than 38) become"
        " exact text",
        "where you know the digits, say them: sinks → iceberg → tables → {table} → columns:"
        ' {{{column}: {{type: "decimal(38,9)"}}}}',
    ),
    _Kind(
        "lake.char_padding",
        _padded,
        "char(n) keeps the blanks that fill it up, as the log sends it; compare with rtrim()",
    ),
)


def surprises(schemas: Sequence[tuple[LakeTarget, TableSchema]]) -> Iterator[Finding]:
    """Names that the lake cannot have, then types that become something else."""
    for target, schema in schemas:
        try:
            check_names(schema)
        except ConfigError as error:
            yield Finding(error.code, "error", target.source, error.message, error.hint)
    taken = [(target, contracted(schema, target)) for target, schema in schemas]
    for kind in _KINDS:
        found = {
            target.source: [c.name for c in schema.columns if kind.about(c, target)]
            for target, schema in taken
        }
        concerned = {table: columns for table, columns in found.items() if columns}
        if concerned:
            yield _told(kind, concerned)


def _told(kind: _Kind, found: Mapping[str, list[str]]) -> Finding:
    table, columns = next(iter(found.items()))
    fix = kind.fix and kind.fix.format(table=table, column=columns[0])
    only = table if len(found) == 1 else None
    return Finding(kind.code, _INFO, only, f"{kind.message}: {named(found.items())}", fix)


def named(found: Iterable[tuple[str, list[str]]]) -> str:
    """``public.a (x, y), public.b (z) and 7 more``"""
    return several([f"{table} ({several(columns)})" for table, columns in found])
