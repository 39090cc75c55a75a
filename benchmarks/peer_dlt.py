"""dlt's full load of one table to Iceberg, run by a Python that has dlt; prints its seconds."""

from __future__ import annotations

import sys
import time

import dlt
from dlt.sources.sql_database import sql_table


def main(port: str, database: str, table: str, folder: str) -> None:
    url = f"postgresql+psycopg2://postgres:tidegate-test@127.0.0.1:{port}/{database}"
    destination = dlt.destinations.filesystem(bucket_url=f"file://{folder}/lake")
    pipeline = dlt.pipeline("bench", destination=destination, pipelines_dir=f"{folder}/state")
    rows = sql_table(url, table=table, schema="public", backend="pyarrow", chunk_size=100_000)
    began = time.perf_counter()
    pipeline.run(rows, table_format="iceberg", write_disposition="replace")
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
