"""Partial sweeps: a range of keys, the same rows on both sides.

``id >= 100 and id < 200``: one table, one key column, ``upsert``. The range is deleted on the
branch and read again at the cut; the log from the table's own position to the cut is then drained
onto the branch, so that the rest of the table stands at the cut too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from tidegate.config.pipeline import LakeTarget
from tidegate.config.sinks import WriteMode
from tidegate.errors import ConfigError
from tidegate.names import quote_spark
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import Kind
from tidegate.spark import publish

_VALUE: Final = r"(?:'(?:[^']|'')*'|[-+]?[0-9]+(?:\.[0-9]+)?)"
_TERM: Final = (
    rf'(?:"(?P<q{{0}}>[^"]+)"|(?P<n{{0}}>\w+))\s*(?P<o{{0}}>>=|<=|>|<|=)\s*(?P<v{{0}}>{_VALUE})'
)
_RANGE: Final = re.compile(
    rf"\s*{_TERM.format(1)}(?:\s+and\s+{_TERM.format(2)})?\s*\Z", re.IGNORECASE
)
_NUMBERS: Final = {Kind.INT, Kind.LONG, Kind.DECIMAL}
_ORDERED: Final = _NUMBERS | {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.STRING}
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?\Z")


@dataclass(frozen=True, slots=True)
class KeyRange:
    """One or two comparisons of one column with a value."""

    column: str
    terms: tuple[tuple[str, str], ...]  # (operator, value)

    @classmethod
    def parse(cls, text: str) -> KeyRange:
        match = _RANGE.match(text)
        if match is None:
            raise _wrong("it is not a range", text)
        names = [match["q1"] or match["n1"]]
        terms = [(match["o1"], _plain(match["v1"]))]
        if match["o2"]:
            names.append(match["q2"] or match["n2"])
            terms.append((match["o2"], _plain(match["v2"])))
        if len(set(names)) > 1:
            raise _wrong("it compares two columns", text)
        return cls(names[0], tuple(terms))

    def key(self, target: LakeTarget, schema: TableSchema) -> Column:
        """The key column the range is over; refuses tables that cannot be swept in part."""
        if target.write_mode is not WriteMode.UPSERT or target.soft_delete:
            raise _wrong("only plain upsert tables can be swept in part", target.source)
        keys = schema.key_columns
        if not keys:
            why = "without a key there is no range of it"
            raise _wrong(why, target.source, hint="sweep the whole table, without --where")
        if len(keys) != 1 or keys[0].name != self.column:
            named = ", ".join(column.name for column in keys)
            raise _wrong(f"the range must be over the whole key ({named})", target.source)
        key = keys[0]
        if key.type.kind not in _ORDERED:
            raise _wrong(f"{key.name} is a {key.type.kind}, which has no ranges", target.source)
        if key.type.kind in _NUMBERS and not all(_NUMBER.match(v) for _, v in self.terms):
            raise _wrong(f"{key.name} is compared with something else than a number", target.source)
        return key

    def source_sql(self, name: str) -> str:
        """The range at the source, of a column that ``Selecting.ordered_sql`` calls ``name``."""
        quoted = ((op, value.replace("'", "''")) for op, value in self.terms)
        return " AND ".join(f"{name} {op} '{value}'" for op, value in quoted)

    def delete(self, session: SparkSession, target: LakeTarget, branch: str, key: Column) -> None:
        """Delete the range on ``branch``. Values are parameters: no statement quotes them (I9)."""
        name = quote_spark(key.name)
        terms = [
            f"{name} {op} CAST(:value{i} AS {key.type.spark})"
            for i, (op, _) in enumerate(self.terms)
        ]
        values = {f"value{i}": value for i, (_, value) in enumerate(self.terms)}
        session.sql(
            f"DELETE FROM {publish.spark_name(target, branch)} WHERE {' AND '.join(terms)}",
            args=values,
        )


def _plain(value: str) -> str:
    return value[1:-1].replace("''", "'") if value.startswith("'") else value


def _wrong(
    why: str, where: str, hint: str = "write a range over the key column: id >= 100 and id < 200"
) -> ConfigError:
    return ConfigError("sweep.where", f"{where}: {why}", hint=hint)
