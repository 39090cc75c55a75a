"""What a JVM is started with: ours, then the platform's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.airflow.operators.spark import EXTRA_OPTIONS, QUIET_LOGS, spark_conf
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, SparkConfig
from tidegate.lake import jars
from tidegate.spark.session import session_conf

DRIVER = "spark.driver.defaultJavaOptions"
PIPELINE = PipelineConfig.model_validate(
    {"pipeline_id": "shop", "source": {"password": "unused", "database": "d"}}
)


def platform(**conf: str) -> PlatformConfig:
    return PlatformConfig(spark=SparkConfig(conf=conf))


def test_options_of_the_platform_come_after_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    monkeypatch.setattr(jars, "CLASSES", tmp_path / "spark.jsa")
    jars.CLASSES.touch()
    own = {DRIVER: "-XX:TieredStopAtLevel=1", EXTRA_OPTIONS: "-Da=b"}
    for conf in (session_conf(platform(**own)), spark_conf(platform(**own), PIPELINE)):
        options = conf[DRIVER].split()
        assert options[-1] == "-XX:TieredStopAtLevel=1"
        assert f"-XX:SharedArchiveFile={jars.CLASSES}" in options
        assert jars.THROUGHPUT in options
    submitted = spark_conf(platform(**own), PIPELINE)[EXTRA_OPTIONS]
    assert submitted == f"-Dlog4j2.configurationFile={QUIET_LOGS} -Da=b"


def test_a_chosen_collector_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    conf = session_conf(platform(**{DRIVER: "-XX:+UseSerialGC"}))
    assert jars.THROUGHPUT not in conf[DRIVER]
    assert jars.THROUGHPUT not in conf["spark.executor.defaultJavaOptions"]
