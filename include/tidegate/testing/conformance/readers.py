"""Independent readers of a lake table; nothing here knows how its rows were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.table import Table

from tidegate.errors import SetupError
from tidegate.names import CATALOG, quote_spark

if TYPE_CHECKING:
    from tidegate.spark.session import SparkSession

Reader = Callable[[Table], pa.Table]


def pyiceberg_reader(table: Table) -> pa.Table:
    return table.scan().to_arrow()


@contextmanager
def duckdb_connection() -> Iterator[Any]:
    """DuckDB with its own implementation of Iceberg (extensions from wheels: no download)."""
    try:
        import duckdb
        import duckdb_extension_avro
        import duckdb_extension_iceberg
    except ImportError as error:
        raise SetupError(
            "conformance.duckdb",
            f"the DuckDB reader is not installed: {error.name}",
            hint="pip install duckdb duckdb-extension-avro duckdb-extension-iceberg, or name other"
            " readers with --reader",
        ) from error
    connection = duckdb.connect()
    for module, name in ((duckdb_extension_avro, "avro"), (duckdb_extension_iceberg, "iceberg")):
        found = next(Path(str(module.__file__)).parent.rglob(f"{name}.duckdb_extension"))
        connection.execute(f"LOAD '{found}'")
    connection.execute("SET TimeZone = 'UTC'")
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def duckdb_reader() -> Iterator[Reader]:
    """Every column of a table."""
    with duckdb_connection() as connection:

        def read(table: Table) -> pa.Table:
            location = table.metadata_location.replace("'", "''")
            found: pa.Table = connection.execute(
                f"SELECT * FROM iceberg_scan('{location}')"
            ).to_arrow_table()
            return found

        yield read


def spark_reader(session: SparkSession) -> Reader:
    def read(table: Table) -> pa.Table:
        name = quote_spark(CATALOG, *table.name())
        session.catalog.refreshTable(name)
        return session.table(name).toArrow()

    return read
