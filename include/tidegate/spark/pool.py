"""A fixed pool of sessions, one per worker thread.

Snapshot properties travel as *session* configuration, which threads of one session share: four
tables merged side by side would all be stamped with one table's position. So every thread has a
session of its own (I1).
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from pyspark.sql import SparkSession

from tidegate.spark.session import lake_conf

Item = TypeVar("Item")
Result = TypeVar("Result")


class SessionPool:
    """``size`` sessions of one application; each is lent to one thread at a time."""

    def __init__(self, spark: SparkSession, size: int) -> None:
        self._size = max(1, size)
        self._free: queue.SimpleQueue[SparkSession] = queue.SimpleQueue()
        conf = lake_conf(spark)
        for _ in range(self._size):
            self._free.put(_sibling(spark, conf))

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session nobody else uses until the block ends."""
        session = self._free.get()
        try:
            yield session
        finally:
            self._free.put(session)

    def map(
        self, work: Callable[[SparkSession, Item], Result], items: Iterable[Item]
    ) -> list[Result]:
        """``work`` for every item, ``size`` at a time, results in order of the items.

        ``work`` keeps its own failures to itself; what it raises ends the whole map.
        """

        def one(item: Item) -> Result:
            with self.session() as session:
                return work(session, item)

        with ThreadPoolExecutor(self._size, thread_name_prefix="tidegate-table") as threads:
            return list(threads.map(one, items))


def _sibling(spark: SparkSession, conf: dict[str, str]) -> SparkSession:
    session = spark.newSession()
    for key, value in conf.items():
        if session.conf.get(key, None) != value:
            session.conf.set(key, value)
    return session
