"""Classes of the JVM that PySpark asks for with every column expression, asked for once.

For each function of an expression PySpark sends three questions: which class has it, whether the
class has it, and the call. By a short name (``PythonUtils``) the first searches every jar for a
class without a package. The answers never change while the JVM lives.
"""

from __future__ import annotations

from typing import Any, Final

from py4j.java_gateway import JavaClass, JavaMember  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

NAMES: Final = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "functions",
    "PythonUtils",
    "PythonSQLUtils",
)
"""Nine in ten questions were about these (counted while small tables were swept and merged)."""


class _Remembering(JavaClass):  # type: ignore[misc]
    """A class whose static methods are looked up once. Threads may share it, as PySpark's own."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


def remember(session: SparkSession) -> None:
    """From now on, for every session of this JVM."""
    jvm: Any = session._jvm  # there is no public way to it
    for name in NAMES:
        if name not in vars(jvm):
            vars(jvm)[name] = _Remembering(getattr(jvm, name)._fqn, jvm._gateway_client)
