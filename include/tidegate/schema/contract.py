"""What a pipeline's file asks of a table's columns: other lake types, and policies.

The change log and the schema history know nothing of it: they keep what the source said. So a file
can be changed, and rows captured earlier follow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import ColumnOptions
from tidegate.errors import ConfigError
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, Policy, TextRule, parse_type

_DATETIMES: Final = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
_NUMBERS: Final = frozenset({Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL})
_DOCUMENTS: Final = frozenset({"json", "jsonb"})
"""Source types whose every value is one valid JSON document: the source has checked it."""
VARIANT_FORMAT: Final = 3
"""The Iceberg format that has variants."""
_NONE: Final = ColumnOptions()


def contracted(schema: TableSchema, target: LakeTarget) -> TableSchema:
    """``schema`` with the lake types and policies that ``target`` asks for."""
    columns = tuple(_column(column, target) for column in schema.columns)
    return replace(schema, columns=columns)


def objections(schema: TableSchema, target: LakeTarget) -> Iterator[str]:
    """What is wrong with the overrides of ``target``, in words."""
    yield from _reload_objections(schema, target)
    for name, options in target.options.columns.items():
        column = schema.column(name)
        if column is None:
            yield f"columns.{name}: {schema.table} has no such column"
            continue
        try:
            found = _column(column, target)
        except ConfigError as error:
            yield f"columns.{name}: {error.message}"
            continue
        if options.policy is None:
            continue
        inner = _inner(column.type if options.policy == "string" else found.type)
        if inner.kind in _DATETIMES or (inner.kind is Kind.DECIMAL and options.policy != "clamp"):
            continue
        yield (
            f"columns.{name}: policy {options.policy} means nothing for {found.type}"
            + ("; NaN has no nearest number" if inner.kind is Kind.DECIMAL else "")
        )


def _reload_objections(schema: TableSchema, target: LakeTarget) -> Iterator[str]:
    if target.options.reload is None:
        return
    name = target.options.reload.time_column
    column = schema.column(name)
    if column is None:
        yield f"reload.time_column: {schema.table} has no column {name}"
    elif column.type.kind not in _DATETIMES:
        yield f"reload.time_column: {name} ({column.source_type}) is neither date nor timestamp"


def _column(column: Column, target: LakeTarget) -> Column:
    options = target.options.columns.get(column.name, _NONE)
    type_ = column.type if options.type is None else _overridden(column, options.type, target)
    policy = _policy(column, type_, options, target)
    if policy is Policy.STRING:
        type_, policy = _as_text(type_), Policy.REJECT
    return replace(column, type=type_, policy=policy, recast=type_ != column.type)


def _policy(
    column: Column, type_: LogicalType, options: ColumnOptions, target: LakeTarget
) -> Policy:
    inner = _inner(type_).kind
    if inner not in _DATETIMES and inner is not Kind.DECIMAL:
        return Policy.REJECT
    if options.policy is not None:
        return Policy(options.policy)
    if column.key is not None:
        # Two rows whose keys were made alike would become one: only by the user's own word.
        return Policy.REJECT
    policies = target.policies
    return Policy(policies.datetime if inner in _DATETIMES else policies.numeric)


def _overridden(column: Column, text: str, target: LakeTarget) -> LogicalType:
    wanted = parse_type(text)
    if wanted is not None and wanted.kind is Kind.VARIANT and holds_documents(column):
        _check_variant(column, target)
        return wanted
    if wanted is not None and _can_be(column.type, column.rule, wanted):
        return wanted
    raise ConfigError(
        "table.override",
        f"{column.name} ({column.source_type}) cannot become {text}",
        hint="every column can be string; whole and fixed-point numbers long or decimal(p,s) with p"
        " up to 38; arrays a list<…> of what their elements can be; json and jsonb variant",
    )


def holds_documents(column: Column) -> bool:
    """Whether a column can be a variant."""
    return column.source_type in _DOCUMENTS and column.type.kind in (Kind.STRING, Kind.VARIANT)


def _check_variant(column: Column, target: LakeTarget) -> None:
    if column.key is not None:
        raise ConfigError(
            "table.variant_key",
            f"{column.name} is part of the key of {target.source}, and variants cannot be compared:"
            " leave it a string",
            hint="take `type: variant` from the column, or give the table another key",
        )
    # The user's own properties win when the table is made (lake/tables.py).
    written = int(target.properties.get("format-version", target.format_version))
    if written < VARIANT_FORMAT:
        raise ConfigError(
            "table.variant_format",
            f"{column.name} cannot be variant: {target.source} has format_version {written}, and"
            f" Iceberg has variants since {VARIANT_FORMAT}: set that, or leave it a string",
            hint=f"set format_version: {VARIANT_FORMAT} (and a new table_name, if the lake table"
            " exists), or leave the column a string",
        )


def _can_be(own: LogicalType, rule: TextRule, wanted: LogicalType) -> bool:
    """Whether a text of ``rule``, naturally ``own``, has an exact cast to ``wanted``."""
    if wanted in (own, STRING):
        return True
    if own.element is not None and wanted.element is not None:
        inner = TextRule.PG_NUMBER if own.element.kind in _NUMBERS else TextRule.PLAIN
        return _can_be(own.element, inner, wanted.element)
    # A float's text is the shortest that reads back as that float: nothing else holds it exactly.
    floating = own.kind in (Kind.FLOAT, Kind.DOUBLE)
    number = rule is TextRule.PG_NUMBER and not floating
    return number and wanted.kind in (Kind.LONG, Kind.DECIMAL)


def _inner(type_: LogicalType) -> LogicalType:
    return type_ if type_.element is None else _inner(type_.element)


def _as_text(type_: LogicalType) -> LogicalType:
    """Text in place of values; a list stays a list."""
    if type_.element is None:
        return STRING
    return replace(type_, element=_as_text(type_.element))
