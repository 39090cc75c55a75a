"""``<pipeline>__verify``: source against lake; by schedule, or by hand with a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import DAG, Param

from tidegate.airflow.dags.report import report
from tidegate.airflow.dags.setting import Setting, tables_param
from tidegate.airflow.operators.job import lake_alias
from tidegate.airflow.operators.spark import TidegateSparkOperator


def verify_arguments(params: Mapping[str, Any]) -> list[str]:
    """The form's answers as arguments of ``verify_tables``."""
    arguments = ["--tables", *params["tables"]]
    # One word: an answer may begin with a dash.
    arguments += [f"--sample={params['sample']}"] if params["sample"] else []
    return arguments + [f"--{name.replace('_', '-')}" for name in _FLAGS if params[name]]


_FLAGS = ("repair", "dry_run")


def verify_params(setting: Setting) -> dict[str, Param]:
    """The form; a scheduled run takes its defaults."""
    return {
        "tables": tables_param(list(setting.pipeline.source.tables), "What is compared."),
        "sample": Param(
            setting.pipeline.verify.sample,
            type="string",
            title="Sample",
            description="Share of each table's keys, as `5%`; successive runs take others, until"
            " all are covered. Or `changed`: only what changed since every row was found equal.",
        ),
        "repair": Param(
            False,
            type="boolean",
            title="Repair",
            description="Read the keys that differ again, through a branch.",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description="With repair: only say how many keys would be read again.",
        ),
    }


def verify(setting: Setting) -> DAG:
    """Source against lake at one position; a table that differs is a red ``report``."""
    with setting.dag(
        "verify",
        schedule=setting.pipeline.schedules.verify,
        does="Compares source and lake, table by table, at one stated position.",
        params=verify_params(setting),
        max_active_runs=1,
    ) as dag:
        compare = TidegateSparkOperator(
            task_id="verify",
            job="verify_tables",
            arguments=verify_arguments,
            outlets=[lake_alias(setting.pipeline.pipeline_id)],
            **setting.files,
        )
        report(compare.output)
    return dag
