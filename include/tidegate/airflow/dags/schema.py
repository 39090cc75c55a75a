"""``<pipeline>__schema``: the live source's schema against the lake's, ahead of time; and what
holds a table already, as a question to people."""

from __future__ import annotations

import logging
from typing import Any, Final

from airflow.sdk import DAG, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting
from tidegate.airflow.operators.ask import AskSchemaOperator
from tidegate.airflow.operators.schema import TidegateSchemaOperator
from tidegate.airflow.outcome import OnHeld, raise_for
from tidegate.airflow.questions import give, questions, read_answer
from tidegate.airflow.schedule import period_seconds
from tidegate.errors import TidegateError

SHARE_OF_PERIOD: Final = 0.9
"""A run that waits is over before the next one, which looks and asks anew."""
_SETTLED: Final = frozenset({"schema.nothing_held", "schema.another_change"})

log = logging.getLogger(__name__)


@task(task_id="held_changes")
def list_held(pipeline_file: str, platform_file: str | None) -> list[dict[str, str]]:
    """What ``approve`` is mapped over; none, and it is skipped."""
    return questions(pipeline_file, platform_file)


@task(task_id="let_through", map_index_template="{{ task.op_kwargs['answer']['table'] }}")
def let_through(answer: dict[str, Any], pipeline_file: str, platform_file: str | None) -> str:
    """Do what was chosen. A task of its own, so that trying again does not ask again."""
    given = read_answer(answer)
    if given.by is None:
        raise AirflowSkipException(
            f"{given.table}: nobody answered. It stays held; the next run asks again."
        )
    try:
        said = give(pipeline_file, platform_file, given)
    except TidegateError as error:
        if error.code in _SETTLED:  # on the command line, while the form was open
            raise AirflowSkipException(str(error)) from error
        raise_for(error, OnHeld.RETRY)
        raise
    log.info(said)
    return said


def wait_seconds(setting: Setting) -> float:
    """``gate.approval_wait_seconds``, or most of the time to the next run if that is shorter."""
    limit = setting.platform.gate.approval_wait_seconds
    period = period_seconds(setting.pipeline.schedules.schema_check)
    return limit if period is None else min(limit, period * SHARE_OF_PERIOD)


def schema(setting: Setting) -> DAG:
    """Build the Dag."""
    with setting.dag(
        "schema",
        schedule=setting.pipeline.schedules.schema_check,
        does="Says which tables the source's schema will hold, and which need a sweep; asks whether"
        " changes that hold a table may go through.",
        max_active_runs=1,  # so that nothing is asked twice at once
    ) as dag:
        check = TidegateSchemaOperator(task_id="check", **setting.files)
        report(check.output)

        @task_group(group_id="held", prefix_group_id=False)
        def held(question: dict[str, str]) -> None:
            asked = AskSchemaOperator(
                task_id="approve",
                question=question,
                wait_seconds=wait_seconds(setting),
                map_index_template="{{ task.question['table'] }}",
            )
            answer: Any = asked.output
            let_through(answer=answer, **setting.files)

        held.expand(question=list_held(**setting.files))
    return dag
