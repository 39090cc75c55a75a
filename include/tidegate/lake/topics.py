"""A table's name as the platform specification has it: ``{prefix}.{schema}.{table}``."""

from __future__ import annotations

from typing import Final

from tidegate.codecs.spelling import TOPIC, spelled
from tidegate.config.pipeline import PipelineConfig
from tidegate.names import TableId

TOPIC_NAME: Final = "{prefix}.{schema}.{table}"


class Topics:
    """The topics of a pipeline; tables whose names are spelled alike keep different ones."""

    def __init__(self, pipeline: PipelineConfig, template: str = TOPIC_NAME) -> None:
        self._pipeline = pipeline
        self._template = template
        tables = pipeline.source.table_ids
        self._schemas = spelled(sorted({table.schema for table in tables}), TOPIC)
        self._names = spelled(sorted({table.name for table in tables}), TOPIC)

    def of(self, table: TableId) -> str:
        """The topic of ``table``, which the file may have stopped naming meanwhile."""
        return self._template.format(
            prefix=self._pipeline.topic_prefix,
            pipeline=self._pipeline.pipeline_id,
            schema=self._schemas.get(table.schema, TOPIC.spell(table.schema)),
            table=self._names.get(table.name, TOPIC.spell(table.name)),
        )
