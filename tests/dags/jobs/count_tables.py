"""A small real Spark job: reads the catalog, hands back counts, uses its secrets."""

from __future__ import annotations

from typing import Any

from tidegate.jobs.door import Call, main


def job(call: Call) -> Any:
    rows = call.spark.range(1000).count()
    password = call.pipeline.source.password.get_secret_value()
    tables = call.tables or call.pipeline.source.tables
    return {
        "rows": rows,
        "secret_length": len(password),
        "tables": [
            {
                "table": table,
                "status": "applied",
                "inserted": rows,
                "snapshot_id": 7,
                "to_position": "e/2",
            }
            for table in tables
        ],
    }


if __name__ == "__main__":
    main(job, name="count_tables")
