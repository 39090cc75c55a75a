"""Tables side by side: what ends one of them hard ends all."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tidegate import faults
from tidegate.spark.pool import SessionPool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ENDLESS = 10**15


def test_results_come_in_the_order_of_the_items(spark: SparkSession) -> None:
    pool = SessionPool(spark, 2)
    assert pool.map(lambda session, n: session.range(n).count(), [3, 1, 2]) == [3, 1, 2]


def test_a_death_begins_nothing_more_and_cancels_what_runs(spark: SparkSession) -> None:
    begun: list[str] = []
    running = threading.Event()

    def work(session: SparkSession, name: str) -> None:
        begun.append(name)
        if name == "endless":
            running.set()
            session.range(ENDLESS).selectExpr("sum(id % 7)").collect()
        running.wait()
        raise faults.Fault(name)

    with pytest.raises(faults.Fault):
        SessionPool(spark, 2).map(work, ["endless", "dies", "never"])
    assert sorted(begun) == ["dies", "endless"]
