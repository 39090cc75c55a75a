"""A schema registry's opinion beside our own verdict. It is asked; it decides nothing."""

from __future__ import annotations

import time

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import RetriableError, TidegateError
from tidegate.lake.subjects import Entry, Subjects
from tidegate.schema.registry import SchemaRegistry
from tidegate.schema.table import TableSchema


class Patience:
    """How long a run bothers with a registry: until its time is up, or it failed once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self.problem: TidegateError | None = None

    def over(self) -> bool:
        if self.problem is None and time.monotonic() > self._until:
            self.problem = RetriableError(
                "registry.slow",
                f"the schema registry took more than {self._seconds:g} s of this run",
                hint="nothing waits for it, the next run goes on; or raise"
                " schema_registry.max_seconds",
            )
        return self.problem is not None


class SecondOpinion:
    """Says whether a schema goes with the newest registered one of its table, in words."""

    def __init__(self, pipeline: PipelineConfig, platform: PlatformConfig) -> None:
        config = platform.schema_registry
        self._patience = Patience(config.max_seconds)
        self._subjects = Subjects(pipeline, config)
        self._registry: SchemaRegistry | None = None
        if platform.registry_url is None:
            return
        try:
            self._registry = SchemaRegistry(config, platform.registry_url)
        except TidegateError as error:
            self._patience.problem = error

    @property
    def problem(self) -> TidegateError | None:
        return self._patience.problem

    def on(self, schema: TableSchema) -> str:
        """``compatible``, ``incompatible: …``, ``new``, ``no answer: …``; empty: none is asked."""
        if self._registry is None and self.problem is None:
            return ""
        said = [self._on(entry) for entry in self._subjects.entries(schema)]
        if self.problem is not None:
            return f"no answer: {self.problem.message} [{self.problem.code}]"
        against = [words for words in said if words.startswith("incompatible")]
        return "; ".join(against) or min(said)

    def _on(self, entry: Entry) -> str:
        if self._registry is None or self._patience.over():
            return ""
        try:
            opinion = self._registry.opinion(entry.subject, entry.text)
        except TidegateError as error:
            self._patience.problem = error
            return ""
        if opinion is None:
            return "new"
        if opinion.compatible:
            return "compatible"
        reasons = f": {'; '.join(opinion.reasons)}" if opinion.reasons else ""
        return f"incompatible with the newest of {entry.subject}{reasons}"
