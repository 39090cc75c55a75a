"""One Spark session per test process, on a platform whose home is a temporary directory.

The catalog of a Spark application is fixed at its first use, so every Spark test of a process
shares one platform; tests keep apart by pipeline id (namespaces follow from it).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tidegate.config.platform import LakeConfig, PlatformConfig, SparkConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    """PySpark leaves the loopback socket of every ``collect`` to the garbage collector."""
    config.addinivalue_line(
        "filterwarnings", r"ignore:unclosed <socket.socket .*127\.0\.0\.1:ResourceWarning"
    )


@pytest.fixture(scope="session")
def spark_platform(tmp_path_factory: pytest.TempPathFactory) -> PlatformConfig:
    """The platform all Spark tests of this process run on."""
    return PlatformConfig(
        lake=LakeConfig(home=str(tmp_path_factory.mktemp("spark_home"))),
        spark=SparkConfig(
            master="local[2]",
            driver_memory="2g",  # one JVM serves hundreds of tests
            table_parallelism=2,
            conf={
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
            },
        ),
    )


@pytest.fixture(scope="session")
def spark(spark_platform: PlatformConfig) -> Iterator[SparkSession]:
    """The session; stopped with its JVM when the test process ends."""
    from tidegate.spark.session import spark_session

    session = spark_session(spark_platform, app_name="tidegate-tests")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def nothing_stays_cached(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spark compares every plan with every cached one, and computes a cache again whenever a table
    it reads is written: one that is left behind slows down all that follows."""
    yield
    if "spark" in request.fixturenames:
        session: SparkSession = request.getfixturevalue("spark")
        clean = session._jsparkSession.sharedState().cacheManager().isEmpty()
        session.catalog.clearCache()  # told once
        assert clean, "something is left in Spark's cache"


@pytest.fixture(scope="session")
def unique_pipeline_id() -> Callable[[], str]:
    """A pipeline id no other test of this process uses."""
    numbers = itertools.count(1)
    return lambda: f"p{next(numbers)}"
