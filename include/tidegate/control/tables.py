"""Which tables a request is about."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.config.pipeline import PipelineConfig
from tidegate.errors import ConfigError
from tidegate.names import TableId


def known_tables(pipeline: PipelineConfig, wanted: Iterable[str] | None) -> tuple[str, ...] | None:
    """``wanted`` as the pipeline spells them; None (all of them) for nothing."""
    names = tuple(str(TableId.parse(name)) for name in wanted or ())
    if not names:
        return None
    unknown = [name for name in names if name not in pipeline.source.tables]
    if unknown:
        raise ConfigError(
            "control.unknown_table",
            f"pipeline {pipeline.pipeline_id} does not take {', '.join(unknown)}",
            hint=f"its tables are {', '.join(pipeline.source.tables) or 'none'};"
            " add others to source.tables and deploy",
        )
    return tuple(dict.fromkeys(names))


def one_table(pipeline: PipelineConfig, wanted: str | None) -> str:
    """The table that is meant, where only one can be."""
    if wanted is not None:
        found = known_tables(pipeline, [wanted])
        if found is not None:
            return found[0]
    if len(pipeline.source.tables) != 1:
        raise ConfigError(
            "control.which_table",
            f"pipeline {pipeline.pipeline_id} has {len(pipeline.source.tables)} tables",
            hint=f"name one with --table: {', '.join(pipeline.source.tables)}",
        )
    return pipeline.source.tables[0]
