"""A fixed pool of sessions, one per worker thread.

Snapshot properties travel as *session* configuration, which threads of one session share: four
tables merged side by side would all be stamped with one table's position. So every thread has a
session of its own (I1).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from pyspark.sql import SparkSession

from tidegate.spark.session import lake_conf

CANCEL_SECONDS: Final = 0.5
Item = TypeVar("Item")
Result = TypeVar("Result")


class SessionPool:
    """``size`` sessions of one application; each is lent to one thread at a time."""

    def __init__(self, spark: SparkSession, size: int) -> None:
        self._spark = spark
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

        ``work`` keeps its own failures to itself; what it raises, and a signal, ends the whole map:
        nothing more is begun, and what runs is cancelled.
        """
        ending = threading.Event()

        def one(item: Item) -> Result:
            if ending.is_set():
                return cast("Result", None)  # nobody will look at it: what ended us is raised
            try:
                with self.session() as session:
                    return work(session, item)
            except BaseException:
                ending.set()  # before this thread takes another item
                raise

        with ThreadPoolExecutor(self._size, thread_name_prefix="tidegate-table") as threads:
            tasks = [threads.submit(one, item) for item in items]
            try:
                ended = wait(tasks, return_when=FIRST_EXCEPTION).done
                for task in ended:
                    task.result()
                return [task.result() for task in tasks]
            except BaseException:
                ending.set()
                self._cancel(tasks)
                raise

    def _cancel(self, tasks: Sequence[Future[Any]]) -> None:
        """Without it a signal would wait for the largest table. A thread that is between two jobs
        starts another one: hence again and again."""
        while wait(tasks, timeout=CANCEL_SECONDS).not_done:
            self._spark.sparkContext.cancelAllJobs()


def _sibling(spark: SparkSession, conf: dict[str, str]) -> SparkSession:
    session = spark.newSession()
    for key, value in conf.items():
        if session.conf.get(key, None) != value:
            session.conf.set(key, value)
    return session
