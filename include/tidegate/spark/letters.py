"""Dead letters as rows of the change log, to be applied like those, and the keys of their rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.envelope.dead_letter import Key
from tidegate.names import CATALOG, quote_spark
from tidegate.schema.table import TableSchema
from tidegate.spark.audit import column as named
from tidegate.spark.casts import cast
from tidegate.spark.local_rows import local_rows

TEXTS: Final = "_cdc_texts"
_LOG_COLUMNS: Final = (
    "epoch",
    "position",
    "tx_id",
    "commit_ts",
    "table",
    "op",
    "schema_id",
    "key",
    "before",
    "after",
    "unchanged",
    "event_id",
)


def letter_rows(
    session: SparkSession, identifier: tuple[str, str], event_ids: Iterable[str]
) -> DataFrame:
    """The changes with ``event_ids``, each once however often it was parked."""
    ids = local_rows(session, event_id=(pa.string(), event_ids))
    parked = session.table(quote_spark(CATALOG, *identifier)).where(F.col("kind") == "parked")
    own = parked.join(F.broadcast(ids), "event_id", "left_semi").dropDuplicates(["event_id"])
    # A key without parts is stored as an empty list; the log has none.
    return own.select(*_LOG_COLUMNS).withColumn("key", F.when(F.size("key") > 0, F.col("key")))


def typed_keys(session: SparkSession, schema: TableSchema, keys: Iterable[Key]) -> DataFrame:
    """Keys in the source's text as the lake has them; those it cannot have are left out."""
    typed = read_keys(session, schema, keys)
    return typed.drop(TEXTS).dropna().distinct()


def unheld_keys(session: SparkSession, schema: TableSchema, keys: Iterable[Key]) -> DataFrame:
    """Those keys, in the source's text, that the lake's types cannot hold."""
    typed = read_keys(session, schema, keys)
    names = [column.name for column in schema.key_columns]
    odd = reduce(SparkColumn.__or__, (named(name).isNull() for name in names))
    texts = (F.col(TEXTS).getItem(place).alias(name) for place, name in enumerate(names))
    return typed.where(odd).select(*texts).distinct()


def read_keys(session: SparkSession, schema: TableSchema, keys: Iterable[Key]) -> DataFrame:
    """Keys as a read of the source gives them: what the lake cannot hold is NULL. Their texts lie
    beside them in :data:`TEXTS`."""
    texts = local_rows(session, **{TEXTS: (pa.list_(pa.string()), [list(key) for key in keys])})
    parts = (
        cast(column, F.col(TEXTS).getItem(place)).value.alias(column.name)
        for place, column in enumerate(schema.key_columns)
    )
    return texts.select(*parts, TEXTS)
