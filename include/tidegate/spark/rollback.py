"""Taking a lake table back to an earlier snapshot."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tidegate.names import CATALOG
from tidegate.spark.publish import MAIN, Identifier, procedure_name, refs


def rollback(session: SparkSession, table: Identifier, snapshot_id: int) -> int:
    """Make an ancestor ``main`` again; the position goes back with the rows (I1)."""
    session.sql(
        f"CALL {CATALOG}.system.rollback_to_snapshot("
        f"table => {procedure_name(table)}, snapshot_id => {snapshot_id})"
    ).collect()
    return refs(session, table)[MAIN]
