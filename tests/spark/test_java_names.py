"""What PySpark asks the JVM for with every expression is asked once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import JavaClass
from pyspark.sql import functions as F

from tidegate.spark.java_names import NAMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_an_expression_asks_for_its_functions_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    look_up = JavaClass.__getattr__

    def counted(self: Any, name: str) -> Any:
        asked.append(name)
        return look_up(self, name)

    monkeypatch.setattr(JavaClass, "__getattr__", counted)
    for _ in range(3):
        made = F.transform(F.array(F.lit(1), F.lit(2)), lambda one: F.hypot(one, F.lit(0)))
        assert spark.range(1).select(made.alias("made")).head().made == [1.0, 2.0]
    assert asked.count("hypot") <= 1
    assert asked.count("lambdaFunction") <= 1


def test_a_name_that_does_not_exist_is_still_an_error(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    for name in NAMES:
        with pytest.raises(Exception, match="does not exist in the JVM"):
            getattr(getattr(jvm, name), "no_such_thing")  # noqa: B009 - the attribute is the point
