"""Column expressions that are built once.

PySpark builds an expression node by node: a call to the JVM for each, and another one when Python
forgets it. For a batch of a few changes that took as long as Spark's own work on it (*measured*).
So what depends on types and places alone, and not on a table's names, is built once and looked up.

A column belongs to no session and never changes; it lives as long as its JVM.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F

KEPT: Final = 4096
"""Per kind of expression: columns of a few hundred tables."""

Facts = ParamSpec("Facts")
Built = TypeVar("Built")


def remembered(build: Callable[Facts, Built]) -> Callable[Facts, Built]:
    """``build``, called once for the same (hashable) arguments in one JVM."""
    jvm, known = None, lru_cache(KEPT)(build)

    @wraps(build)
    def look_up(*args: Facts.args, **kwargs: Facts.kwargs) -> Built:
        nonlocal jvm, known
        if jvm is not SparkContext._gateway:
            jvm, known = SparkContext._gateway, lru_cache(KEPT)(build)
        return known(*args, **kwargs)  # type: ignore[arg-type]

    return look_up


@remembered
def named(*names: str) -> tuple[Column, ...]:
    """Columns by their names, which must need no quotes."""
    return tuple(map(F.col, names))
