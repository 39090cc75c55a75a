"""Which schemas of a pipeline's history belong under which subjects of a schema registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate.codecs.avro import render
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.registry import SchemaRegistryConfig
from tidegate.lake.registrations import Known
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.topics import Topics
from tidegate.names import TableId
from tidegate.schema.table import TableSchema


@dataclass(frozen=True, slots=True)
class Entry:
    """One schema of a table under one subject, as Avro text."""

    table: str
    schema_id: str
    subject: str
    text: str


class Subjects:
    """The subjects of a pipeline: ``<topic>-key`` and ``<topic>-value`` of every table."""

    def __init__(self, pipeline: PipelineConfig, config: SchemaRegistryConfig) -> None:
        self._pipeline = pipeline
        self._topics = Topics(pipeline, config.subject)

    def topic(self, table: TableId) -> str:
        """A name of the form the platform specification has for topics."""
        return self._topics.of(table)

    def entries(self, schema: TableSchema) -> Iterator[Entry]:
        """The key's, if there is one, and the row's."""
        topic = self.topic(schema.table)
        texts = render(schema, topic)
        for part, text in (("key", texts.key), ("value", texts.value)):
            if text is not None:
                yield Entry(str(schema.table), schema.schema_id, f"{topic}-{part}", text)

    def history(
        self, history: SchemaHistory, tables: Sequence[str] | None = None
    ) -> Iterator[tuple[Entry, ...]]:
        """What every table's schemas ask for, table by table, each schema once, oldest first."""
        for name in tables or self._pipeline.source.tables:
            known = {e.schema_id: e.schema for e in history.all(TableId.parse(name))}
            yield tuple(entry for schema in known.values() for entry in self.entries(schema))


def pending(entries: Sequence[Entry], known: Known) -> tuple[Entry, ...]:
    """What the registry does not have yet, of one table.

    A schema that was refused is left out once a later one was taken: accepted now, it would be the
    subject's newest and stand for rows that are older.
    """
    last: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if known.registered(entry.subject, entry.schema_id):
            last[entry.subject] = index
    return tuple(
        entry for index, entry in enumerate(entries) if index > last.get(entry.subject, -1)
    )
