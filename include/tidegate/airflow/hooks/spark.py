"""spark-submit by the apache-spark provider, with a master of our own and an end that is one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from tidegate.airflow.processes import end_tree
from tidegate.config.platform import SparkConfig
from tidegate.errors import ConfigError, SetupError


class TidegateSparkHook(SparkSubmitHook):
    """The provider's hook; master and deploy mode come from ``platform.yaml`` unless a Spark
    connection is named."""

    def __init__(self, spark: SparkConfig, *, conn_id: str | None = None, **options: Any) -> None:
        self._spark = spark
        self._named_connection = conn_id or spark.connection_id
        self.ended = 0  # processes that on_kill ended
        super().__init__(conn_id=self._named_connection or "", **options)
        if self._connection["deploy_mode"] == "cluster":
            raise ConfigError(
                "spark.cluster_mode",
                "spark.deploy_mode cluster is not supported by the Airflow operators",
                hint="use client: the driver then runs beside the task and hands its result back;"
                " the work still runs on the cluster's executors",
            )

    def _resolve_connection(self) -> dict[str, Any]:
        if self._named_connection is not None:
            # The provider answers an unknown connection with yarn; we would rather hear of it.
            self.get_connection(self._named_connection)
            resolved: dict[str, Any] = super()._resolve_connection()
            return resolved
        return {
            "master": self._spark.master,
            "queue": None,
            "deploy_mode": self._spark.deploy_mode,
            "spark_binary": "spark-submit",
            "namespace": self._conf.get("spark.kubernetes.namespace"),
            "principal": None,
            "keytab": None,
            "rest_scheme": "http",
            "rest_port": 6066,
            "rest_endpoint": None,
        }

    def _get_spark_binary_path(self) -> list[str]:
        """Beside our Python first: that is the pyspark the jobs are written for."""
        name = self._connection["spark_binary"]
        beside = Path(sys.executable).parent / name
        found = str(beside) if beside.exists() else shutil.which(name)
        if found is None:
            raise SetupError(
                "spark.not_found",
                f"{name} is neither beside {sys.executable} nor on the PATH",
                hint="pip install pyspark into Airflow's environment",
            )
        return [found]

    def on_kill(self) -> None:
        """End launcher, JVM and Python driver; the provider ends the launcher only (seen).

        Runs inside Airflow's signal handler, maybe in the middle of a log line: logging here would
        wait for ever on the lock that line holds (seen).
        """
        process = self._submit_sp
        if process is not None and process.poll() is None:
            self.ended = end_tree(process.pid)
        super().on_kill()
