"""Identifiers: source tables, lake tables, control tables, branches, slots.

One word, one spelling, one place. Everything that turns a name of one system into a name of
another is here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from tidegate.errors import ConfigError

CATALOG: Final = "lake"
"""The Iceberg catalog's name, the same in Spark and PyIceberg."""

PROPERTY_PREFIX: Final = "tidegate."
POSITION_PROPERTY: Final = "tidegate.position"  # lake tables: applied through (I1)
EPOCH_PROPERTY: Final = "tidegate.epoch"
CAPTURED_THROUGH: Final = "tidegate.captured_through"  # change log
ANCHOR_PROPERTY: Final = "tidegate.anchor"  # change log: how the source finds that place elsewhere
LOOK_PROPERTY: Final = "tidegate.look"  # change log: TableFacts.mark of the last look
RUN_PROPERTY: Final = "tidegate.run"
STEP_PROPERTY: Final = "tidegate.step"  # apply | sweep | chunk | repair | stamp | part | offset
STEP_SWEEP: Final = "sweep"  # of the snapshot that publishes a sweep
STEP_REPAIR: Final = "repair"  # of the one that publishes rows read again by key
LETTERS_PROPERTY: Final = "tidegate.letters"  # the batch that parked or resolved dead letters
CHUNK_PROPERTY: Final = "tidegate.chunk"
FORMAT_PROPERTY: Final = "tidegate.format"  # version of what we store; see STORED_FORMAT
STORED_FORMAT: Final = "1"
DEPLOYMENT_PROPERTY: Final = "tidegate.deployment"  # of the control namespace, while deployed
STEP_OFFSET: Final = "offset"  # of the empty commit by which someone moved a table's position

CDC_PREFIX: Final = "_cdc_"
"""Prefix of the columns that Tidegate adds to lake tables."""

_PART = re.compile(r'(?:^|\.)(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^".]*))')
_PIPELINE_ID = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")


class TableId(NamedTuple):
    """A source table: schema and name exactly as the source spells them."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{quote_part(self.schema)}.{quote_part(self.name)}"

    @property
    def sql(self) -> str:
        """Always quoted, for SQL text."""
        return f"{quote_sql(self.schema)}.{quote_sql(self.name)}"

    @classmethod
    def parse(cls, text: str) -> TableId:
        """``schema.table``; a part with dots, upper case or quotes is written in double quotes."""
        parts = _split(text)
        if len(parts) == 1:
            parts.insert(0, "public")
        if len(parts) != 2 or not all(parts):
            raise ConfigError(
                "config.table_name",
                f"{text!r} is not a table name",
                hint='write schema.table; quote a part that holds a dot: public."odd.name"',
            )
        return cls(*parts)


def _split(text: str) -> list[str]:
    """The parts of a dotted name; empty if any character belongs to none of them."""
    matches = list(_PART.finditer(text))
    if sum(len(match.group()) for match in matches) != len(text):
        return []
    return [
        match["quoted"].replace('""', '"') if match["quoted"] is not None else match["plain"]
        for match in matches
    ]


def quote_part(part: str) -> str:
    """Quote only where the text form needs it (a dot or a double quote)."""
    return quote_sql(part) if re.search(r'[."]', part) or not part else part


def several(names: Sequence[object], most: int = 5) -> str:
    """Names for a sentence, the first few of many."""
    some = ", ".join(map(str, names[:most]))
    return some if len(names) <= most else f"{some} and {len(names) - most} more"


def quote_sql(identifier: str) -> str:
    """A quoted SQL identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def quote_spark(*parts: str) -> str:
    """A Spark identifier of one or more parts, each in backticks."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def check_pipeline_id(value: str) -> str:
    """Pipeline ids name namespaces, slots and Dags, so they keep to what all of them allow."""
    if not _PIPELINE_ID.match(value):
        raise ValueError(
            "1 to 40 of a-z, 0-9 and _, beginning with a letter"
            " (it names a replication slot, an Iceberg namespace and Dags)"
        )
    return value


def control_namespace(pipeline_id: str) -> str:
    """Where a pipeline's change log, gate journal, schema history and reports live."""
    return f"tidegate_{pipeline_id}"


def lake_table(table: TableId, template: str) -> str:
    """A lake table's name from the sink's ``table_name`` template: ``{schema}``, ``{table}``."""
    return template.format(schema=lake_part(table.schema), table=lake_part(table.name))


def lake_part(name: str) -> str:
    """An identifier every engine takes: dots, slashes and control characters become ``_``.

    Case is kept; two names that would collide are refused by ``validate``.
    """
    return re.sub(r"[^\w$-]", "_", name)


def sweep_branch(run: str) -> str:
    """The Iceberg branch a sweep writes to."""
    return f"sweep_{run}"


def apply_branch(token: str) -> str:
    """The token-named branch of a fenced apply."""
    return f"apply_{token}"
