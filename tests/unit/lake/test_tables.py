"""What lake tables look like: columns by mode, terms, DDL."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.sinks import IcebergSink, SinkConfig, SinkType
from tidegate.config.source import SourceConfig
from tidegate.errors import ConfigError
from tidegate.lake.tables import (
    columns,
    create_sql,
    partitioning,
    shape_sql,
)
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema
from tidegate.schema.types import STRING, Kind, LogicalType, TextRule

ORDERS = TableId("public", "orders")
LONG = LogicalType(Kind.LONG)
INSTANT = LogicalType(Kind.TIMESTAMPTZ)


def column(name: str, type_: LogicalType, key: int | None = None) -> Column:
    return Column(name, str(type_), type_, TextRule.PLAIN, nullable=key is None, key=key)


ORDER_COLUMNS = (
    column("id", LONG, key=0),
    column("created_at", INSTANT),
    column("total", LogicalType(Kind.DECIMAL, 12, 2)),
    column("tags", LogicalType(Kind.LIST, element=STRING)),
)
SCHEMA = TableSchema(ORDERS, ORDER_COLUMNS)
WITH_DOCUMENT = TableSchema(ORDERS, (*ORDER_COLUMNS, column("doc", LogicalType(Kind.VARIANT))))


def target(**sink: Any) -> LakeTarget:
    pipeline = PipelineConfig(
        pipeline_id="shop",
        source=SourceConfig(password="unused", database="shop", tables=("public.orders",)),
        sinks=(
            SinkConfig(sink_id="lake", sink_type=SinkType.ICEBERG, iceberg=IcebergSink(**sink)),
        ),
    )
    return pipeline.target(ORDERS)


@pytest.mark.parametrize(
    ("sink", "added"),
    [
        ({}, []),
        ({"soft_delete": True}, ["_cdc_deleted", "_cdc_position"]),
        (
            {"write_mode": "append"},
            ["_cdc_op", "_cdc_position", "_cdc_commit_ts", "_cdc_event_id"],
        ),
        (
            {"write_mode": "history"},
            [
                "_cdc_valid_from",
                "_cdc_valid_to",
                "_cdc_from_position",
                "_cdc_to_position",
                "_cdc_current",
                "_cdc_deleted",
            ],
        ),
    ],
)
def test_each_mode_adds_its_own_columns(sink: dict[str, Any], added: list[str]) -> None:
    names = [c.name for c in columns(SCHEMA, target(**sink))]
    assert names == ["id", "created_at", "total", "tags", *added]


def test_the_key_is_required_except_where_a_truncate_is_a_row() -> None:
    assert not columns(SCHEMA, target())[0].nullable
    assert columns(SCHEMA, target(write_mode="append"))[0].nullable


def test_a_table_without_a_key_keeps_nothing_that_ended() -> None:
    keyless = TableSchema(ORDERS, (column("note", STRING),))
    for kept in ({"write_mode": "history"}, {"soft_delete": True}):
        with pytest.raises(ConfigError, match="has no key"):
            columns(keyless, target(**kept))
    for mode in ("append", "upsert"):
        assert columns(keyless, target(write_mode=mode))[0].nullable


@pytest.mark.parametrize("name", ["_cdc_op", "_CDC_x", "_pos", "_FILE"])
def test_reserved_column_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        columns(TableSchema(ORDERS, (column("id", LONG, 0), column(name, STRING))), target())
    assert caught.value.code == "table.reserved_column"


def test_columns_that_differ_only_in_case_are_refused() -> None:
    twins = TableSchema(ORDERS, (column("id", LONG, 0), column("ID", LONG)))
    with pytest.raises(ConfigError) as caught:
        columns(twins, target())
    assert caught.value.code == "table.column_case"


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("day(created_at)", "days(`created_at`)"),
        ("days(created_at)", "days(`created_at`)"),
        ("YEAR( created_at )", "years(`created_at`)"),
        ("months(created_at)", "months(`created_at`)"),
        ("hour(created_at)", "hours(`created_at`)"),
        ("bucket(16, id)", "bucket(16, `id`)"),
        ("bucket(id, 16)", "bucket(16, `id`)"),
        ("truncate(10, total)", "truncate(10, `total`)"),
        ("`id`", "`id`"),
        ('day("created_at")', "days(`created_at`)"),
        ("total", "`total`"),
    ],
)
def test_partition_terms_become_sparks(text: str, sql: str) -> None:
    (term,) = partitioning(SCHEMA, target(partition_by=(text,)))
    assert term.sql == sql


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("day(create_at)", "did you mean created_at"),
        ("day(id)", "does not work on id"),
        ("hours(total)", "does not work on total"),
        ("bucket(id)", "write bucket"),
        ("bucket(0, id)", "write bucket"),
        ("week(created_at)", "is no transform"),
        ("tags", "it is a list"),
        ("doc", "it is a variant"),
        ("bucket(4, doc)", "does not work on doc"),
        ("nothing", "there is no column nothing"),
    ],
)
def test_a_wrong_partition_term_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        partitioning(WITH_DOCUMENT, target(partition_by=(text,)))


def test_a_variant_is_no_sort_term() -> None:
    with pytest.raises(ConfigError, match="it is a variant"):
        shape_sql(target(sort_by=("doc desc",)), WITH_DOCUMENT)


def test_two_time_transforms_of_one_column_are_refused() -> None:
    with pytest.raises(ConfigError, match="already"):
        partitioning(SCHEMA, target(partition_by=("year(created_at)", "day(created_at)")))


def test_modes_columns_can_be_partitioned_by() -> None:
    appended = target(write_mode="append", partition_by=("day(_cdc_commit_ts)",))
    assert "PARTITIONED BY (days(`_cdc_commit_ts`))" in create_sql(appended, SCHEMA)


def test_create_sql_says_everything_a_new_table_needs() -> None:
    made = target(
        partition_by=("bucket(4, id)",), properties={"write.parquet.compression-codec": "zstd"}
    )
    sql = create_sql(made, SCHEMA, "shop")
    assert sql.startswith("CREATE TABLE IF NOT EXISTS `lake`.`shop`.`orders` (")
    for part in (
        "`id` bigint NOT NULL",
        "`total` decimal(12,2)",
        "`tags` array<string>",
        "PARTITIONED BY (bucket(4, `id`))",
        "'format-version' = '3'",
        "'write.merge.mode' = 'merge-on-read'",
        "'write.metadata.delete-after-commit.enabled' = 'true'",
        "'tidegate.format' = '1'",
        "'tidegate.pipeline' = 'shop'",
        "'tidegate.source' = 'public.orders'",
        "'write.parquet.compression-codec' = 'zstd'",
    ):
        assert part in sql


def test_odd_names_and_comments_are_quoted() -> None:
    odd = TableSchema(
        ORDERS,
        (column("id", LONG, 0), Column("it's `odd`", "o'type\\", STRING, TextRule.PLAIN)),
    )
    assert "`it's ``odd``` string COMMENT 'o\\'type\\\\'" in create_sql(target(), odd)


def test_rows_are_ordered_by_the_key_unless_told_otherwise() -> None:
    assert shape_sql(target(), SCHEMA) == [
        "ALTER TABLE `lake`.`shop`.`orders` WRITE LOCALLY ORDERED BY `id`",
        "ALTER TABLE `lake`.`shop`.`orders` SET IDENTIFIER FIELDS `id`",
    ]
    chosen = target(sort_by=("created_at desc nulls last", "id"), partition_by=("day(created_at)",))
    assert shape_sql(chosen, SCHEMA)[0].endswith(
        "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY `created_at` DESC NULLS LAST, `id`"
    )
