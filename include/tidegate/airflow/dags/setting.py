"""What the generated Dags of one pipeline have in common."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import ParamsDict

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig

START: Final = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
"""Any past date: catchup is off, so only the newest interval ever runs."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One pipeline and the files it came from, as the Dags' tasks are given them."""

    pipeline: PipelineConfig
    platform: PlatformConfig
    pipeline_file: str
    platform_file: str | None

    @property
    def files(self) -> dict[str, Any]:
        """Arguments of every operator and sensor."""
        return {"pipeline_file": self.pipeline_file, "platform_file": self.platform_file}

    def dag_id(self, kind: str) -> str:
        return f"{self.pipeline.pipeline_id}__{kind}"

    @contextmanager
    def dag(
        self,
        kind: str,
        *,
        schedule: Any,
        does: str,
        params: Mapping[str, Param] | None = None,
        **options: Any,
    ) -> Iterator[DAG]:
        """A Dag with the pipeline's owner, tags, retries and documentation; tasks made inside are
        its own.

        ``schedule`` is a cron expression, a timetable, or None.
        """
        retry = self.platform.retry
        with DAG(
            self.dag_id(kind),
            schedule=schedule,
            start_date=START,
            catchup=False,
            # dags/tidegate_pipelines.py names them; dags/tidegate_pipeline_errors.py, which only
            # looks for problems, must not own them too.
            auto_register=False,
            tags={"tidegate", self.pipeline.pipeline_id, kind, *self.pipeline.tags},
            description=does,
            doc_md=self._documentation(does),
            default_args={
                "owner": self.pipeline.owner,
                # Only retriable errors come this far: the operators fail others at once.
                "retries": retry.max_attempts - 1,
                "retry_delay": datetime.timedelta(seconds=retry.initial_wait_seconds),
                "max_retry_delay": datetime.timedelta(seconds=retry.max_wait_seconds),
                "retry_exponential_backoff": retry.multiplier,
            },
            **options,
        ) as dag:
            yield dag
        # Last: Airflow copies a Dag's params into each of its tasks, once for every class of the
        # task's, though a run reads the Dag's own. That was a fifth of the time parsing takes.
        dag.params = ParamsDict(dict(params or {}))

    def _documentation(self, does: str) -> str:
        pipeline = self.pipeline
        rows = "\n".join(
            f"| `{target.source}` | `{target.namespace}.{target.name}` | {target.write_mode} |"
            for target in pipeline.targets
        )
        return (
            f"{does}\n\n"
            f"Pipeline **{pipeline.pipeline_id}**: {pipeline.source.source_type} database"
            f" `{pipeline.source.database}`, owner {pipeline.owner}.\n\n"
            f"| source table | lake table | mode |\n|---|---|---|\n{rows}\n\n"
            f"Made from `{self.pipeline_file}`. Edit that file, not this Dag.\n"
        )


def tables_param(tables: list[str], description: str) -> Param:
    """A multi-select of a pipeline's tables."""
    return Param(
        tables,
        type="array",
        title="Tables",
        description=description,
        items={"type": "string", "enum": tables},
        examples=tables,  # what makes the form a multi-select
        minItems=1 if tables else 0,
        uniqueItems=True,
    )
