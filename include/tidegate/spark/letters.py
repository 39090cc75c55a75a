"""Dead letters as rows of the change log, to be applied like those."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.names import CATALOG, quote_spark

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
    ids = session.createDataFrame([(one,) for one in event_ids], "event_id string")
    parked = session.table(quote_spark(CATALOG, *identifier)).where(F.col("kind") == "parked")
    own = parked.join(F.broadcast(ids), "event_id", "left_semi").dropDuplicates(["event_id"])
    # A key without parts is stored as an empty list; the log has none.
    return own.select(*_LOG_COLUMNS).withColumn("key", F.when(F.size("key") > 0, F.col("key")))
