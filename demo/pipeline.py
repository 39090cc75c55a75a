"""The demo's ``shop.yaml`` and ``platform.yaml``, written as a user would write them."""

from __future__ import annotations

from typing import Final

from demo import places, shops

_PIPELINE: Final = """\
# Written by `make demo`. The whole pipeline: one source, its tables, how they look in the lake.
pipeline_id: {pipeline_id}
owner: demo
tags: [demo]

source:
  source_type: {kind}
  host: 127.0.0.1
  port: {port}
  database: {database}
  username: {user}
  password: ${{SHOP_CDC_PASSWORD}}
  tables:
{tables}

sinks:
  - sink_id: lake
    sink_type: iceberg
    iceberg:
      write_mode: upsert
      # Low thresholds, so that compaction and expiry have something to do within minutes.
      maintenance:
        compaction_interval_seconds: 0
        compaction_file_threshold: 2
        delete_file_threshold: 1
        expire_snapshots_interval_seconds: 0
        expire_snapshots_older_than_seconds: 60
        retain_last: 4
      tables:
        {schema}.orders:
          expectations:
            - type: expect_column_values_to_be_in_set
              kwargs: {{column: status, value_set: [placed, paid, shipped, cancelled]}}
            - type: expect_column_values_to_be_between
              kwargs: {{column: total, min_value: 0}}
        {schema}.customers:
          expectations:
            - type: expect_column_values_to_not_be_null
              kwargs: {{column: email}}

schedules:
  changes: {changes}
  maintenance: null
  verify: null
  schema_check: null
"""

_PLATFORM: Final = """\
# Written by `make demo`. Everything here has a default; these fit a laptop.
lake:
  home: {home}

spark:
  master: local[2]
  driver_memory: 1g
  table_parallelism: 3
  conf:
    spark.ui.enabled: "false"
    spark.driver.host: 127.0.0.1
    spark.driver.bindAddress: 127.0.0.1
    spark.sql.shuffle.partitions: "4"
    # Applications of half a minute: do not compile for hours.
    spark.driver.defaultJavaOptions: >-
      -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=160m

sweep:
  chunk_rows: 20000
  parallelism: 2
  # The demo leaves a transaction open on purpose, for as long as a slow machine takes.
  cut_timeout_seconds: 900
"""


def write_pipeline(shop: shops.Shop, *, changes_schedule: str | None) -> None:
    places.PIPELINES.mkdir(parents=True, exist_ok=True)
    places.PLATFORM_FILE.write_text(_PLATFORM.format(home=places.LAKE_HOME))
    places.PIPELINE_FILE.write_text(
        _PIPELINE.format(
            pipeline_id=places.PIPELINE_ID,
            kind=shop.kind,
            port=shop.port,
            schema=shop.schema,
            database=shops.DATABASE,
            user=shops.CAPTURE_USER,
            tables="\n".join(f"    - {shop.schema}.{table}" for table in shops.TABLES),
            changes=f'"{changes_schedule}"' if changes_schedule else "null",
        )
    )
