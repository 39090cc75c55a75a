"""The two sides of a comparison: the source at a cut, the lake at a snapshot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession

from tidegate.config.pipeline import LakeTarget
from tidegate.config.platform import SweepConfig
from tidegate.connectors.cut import Chunk, ExactCut, Survey
from tidegate.schema.table import TableSchema
from tidegate.spark.audit import column as named
from tidegate.spark.casts import cast
from tidegate.spark.publish import spark_name
from tidegate.spark.sweep_read import Reading, SourceRead
from tidegate.spark.verify_rows import lake_rows


@dataclass(frozen=True, slots=True)
class Part:
    """Some of a table's rows in the source's SQL, and the same in disjoint pieces."""

    predicate: str
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sides:
    """One table's rows on both sides, in the lake table's own types."""

    session: SparkSession
    cut: ExactCut
    target: LakeTarget
    schema: TableSchema
    settings: SweepConfig
    survey: Survey
    chunks: tuple[Chunk, ...]

    @classmethod
    def of(
        cls,
        session: SparkSession,
        cut: ExactCut,
        target: LakeTarget,
        schema: TableSchema,
        settings: SweepConfig,
        part: Part | None = None,
    ) -> Sides:
        """All of the table, or ``part`` of the source's rows."""
        if part is not None:
            survey = cut.survey(target.table, schema, part.predicate)
            chunks = [Chunk(str(n), piece) for n, piece in enumerate(part.pieces)]
        else:
            survey = cut.survey(target.table, schema)
            chunks = cut.chunks(target.table, schema, settings.chunk_rows, by_key=False)
        return cls(session, cut, target, schema, settings, survey, tuple(chunks))

    @property
    def plain(self) -> frozenset[str]:
        return self.survey.plain

    def source(self, predicate: str | None = None) -> DataFrame:
        """The source's rows at the cut that ``predicate`` (the source's SQL) lets through."""
        return self.as_lake(self.read(predicate, all_rows=True).frame)

    def read(
        self,
        predicate: str | None = None,
        *,
        keys: DataFrame | None = None,
        all_rows: bool = False,
    ) -> SourceRead:
        """Like :meth:`source`, in the source's types and with what was seen on the way; with
        ``keys`` of those keys only; only with ``all_rows`` those that hold a value too large to be
        taken."""
        chunks = self.chunks
        if predicate is not None:
            chunks = tuple(
                replace(chunk, predicate_sql=f"({chunk.predicate_sql}) AND ({predicate})")
                for chunk in chunks
            )
        return Reading(
            self.session, self.cut, self.schema, self.survey, self.settings, all_rows
        ).rows(chunks, keys)

    def unheld_keys(self) -> DataFrame:
        """Keys of the source's rows, as it prints them, that the lake's types cannot hold."""
        keys = self.schema.key_columns
        schema = replace(self.schema, columns=keys)
        parts: tuple[Chunk | str, ...] = self.chunks or ("false",)
        reading = Reading(self.session, self.cut, schema, self.survey, self.settings)
        texts = reading.query(self.cut.text_sql(schema.table, schema, part) for part in parts)
        failed = (cast(column, named(column.name)).failed for column in keys)
        return texts.where(reduce(SparkColumn.__or__, failed))

    def lake(self, snapshot_id: int) -> DataFrame:
        """The rows of a snapshot that stand for the source's."""
        rows = lake_rows(self.session, self.target, self.schema, snapshot_id)
        return rows.select(*(named(column.name) for column in self.schema.columns))

    def as_lake(self, rows: DataFrame) -> DataFrame:
        """Source rows in the lake table's types, which may be wider."""
        fields = self.session.table(spark_name(self.target.identifier)).schema.fields
        types = {field.name: field.dataType for field in fields}
        return rows.select(
            *(named(c.name).cast(types[c.name]).alias(c.name) for c in self.schema.columns)
        )
