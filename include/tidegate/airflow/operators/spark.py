"""Run one of ``spark_jobs/`` by spark-submit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidegate.airflow.handover import Handover, handover, job_environment
from tidegate.airflow.hooks.source import source_secrets
from tidegate.airflow.hooks.spark import TidegateSparkHook
from tidegate.airflow.lineage import Writes, task_lineage
from tidegate.airflow.operators.job import caller_of, emit_events, run_name
from tidegate.airflow.outcome import OnHeld, failed_tables, settle
from tidegate.config.loader import load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.jobs.lines import table_lines

EXTRA_OPTIONS: Final = "spark.driver.extraJavaOptions"
QUIET_LOGS = Path(__file__).with_name("log4j2.properties")
Arguments = Callable[[Mapping[str, Any]], Sequence[str]]


class TidegateSparkOperator(SparkSubmitOperator):
    """One Spark application for the tables of one pipeline.

    :param job: a file of ``spark_jobs/``: apply_changes, sweep_tables, maintain_tables, …
    :param pipeline_file: the pipeline's YAML.
    :param platform_file: the platform's YAML; None for the defaults.
    :param tables: source tables (templated); None for all of the pipeline.
    :param options: further arguments of the job (templated); empty ones are left out.
    :param arguments: more of them, made from the run's params in ``execute()``.
    :param on_held: what to do when a gate or lease holds the work back.
    :param strict: fail the task if a table failed; otherwise read ``tables`` of the result.
    :param jobs_dir: where ``spark_jobs/`` is; by default beside ``include/``.
    :param conn_id: a Spark connection, in place of ``spark.master`` in the platform file.

    Returns counts, positions and states per table. Config and data errors fail at once, retriable
    ones follow the task's retries. Secrets are resolved here in ``execute()`` and go by file: the
    provider's template fields (conf, application_args, env_vars) stay empty (I9).
    """

    template_fields: Sequence[str] = ("tables", "options")
    ui_color = "#e6f4f1"

    def __init__(
        self,
        *,
        job: str,
        pipeline_file: str,
        platform_file: str | None = None,
        tables: Sequence[str] | None = None,
        options: Sequence[str] = (),
        arguments: Arguments | None = None,
        on_held: OnHeld = OnHeld.SKIP,
        strict: bool = False,
        jobs_dir: str | None = None,
        conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(durable=False, **kwargs)
        self.job = job
        self.pipeline_file = pipeline_file
        self.platform_file = platform_file
        self.tables = tables
        self.options = options
        self.arguments = arguments
        self.on_held = on_held
        self.strict = strict
        self.jobs_dir = jobs_dir
        self.spark_conn_id = conn_id
        self._value: dict[str, Any] | None = None

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        pipeline, secrets = source_secrets(self.pipeline_file)
        platform = load_platform(self.platform_file)
        died = f"{self.job} ended"
        with handover() as files:
            files.write_secrets(secrets)
            files.write_spark_conf(spark_conf(platform, pipeline))
            hook = self._hook = self._spark_hook(platform, pipeline, files, context)
            try:
                hook.submit(str(self._application()), env=job_environment(caller_of(context)))
            except AirflowException as error:
                # The job's own words are better, if it had time to write them.
                died = str(error)
            if hook.ended:
                self.log.info("Ended the Spark application: %d processes", hook.ended)
            value = self._value = settle(files.result(), on_held=self.on_held, died=died)
        for line in table_lines(value):
            self.log.info(line)
        emit_events(context, self.outlets, pipeline, value)
        if self.strict and (lines := [entry["line"] for entry in failed_tables(value)]):
            raise AirflowFailException("; ".join(lines))
        return value

    def on_kill(self) -> None:
        if self._hook is not None:
            self._hook.on_kill()

    def get_openlineage_facets_on_start(self) -> Any:
        return task_lineage(self.pipeline_file, Writes.LAKE, tables=self.tables)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        return task_lineage(self.pipeline_file, Writes.LAKE, tables=self.tables, value=self._value)

    def _application(self) -> Path:
        root = Path(self.jobs_dir) if self.jobs_dir else Path(__file__).parents[4] / "spark_jobs"
        return root / f"{self.job}.py"

    def _spark_hook(
        self, platform: PlatformConfig, pipeline: PipelineConfig, files: Handover, context: Context
    ) -> TidegateSparkHook:
        arguments = files.arguments(self.pipeline_file, self.platform_file, run_name(context))
        if self.tables is not None:
            arguments += ["--tables", *self.tables]
        arguments += filter(None, self.options)
        if self.arguments is not None:
            arguments += self.arguments(context["params"])
        return TidegateSparkHook(
            platform.spark,
            conn_id=self.spark_conn_id,
            name=f"{self.job} {pipeline.pipeline_id}",
            properties_file=str(files.spark_conf),
            application_args=arguments,
        )


def spark_conf(platform: PlatformConfig, pipeline: PipelineConfig) -> dict[str, str]:
    """What the JVM must know before the job's session starts; the platform file has the last word.

    The catalog's settings are the session's own (tidegate.spark.session).
    """
    from tidegate.lake.jars import jar_settings, joined_options, jvm_options

    defaults = {
        "spark.driver.memory": platform.spark.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    # Spark's own error lines quote values of failed casts (I9).
    quiet = joined_options(platform, EXTRA_OPTIONS, f"-Dlog4j2.configurationFile={QUIET_LOGS}")
    jars = jar_settings(platform, pipeline)
    return {**defaults, **platform.spark.conf, **jars, **jvm_options(platform), **quiet}
