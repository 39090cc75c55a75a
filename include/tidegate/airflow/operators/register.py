"""Tell the schema registry new schemas: a plain Python process beside apply, no JVM."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from tidegate.airflow.operators.schema import TidegateSchemaOperator
from tidegate.jobs.lines import reason


class TidegateRegisterOperator(TidegateSchemaOperator):
    """Skipped, with the reason, where the registry did not answer: no other task waits for it.

    :param pipeline_file: the pipeline's YAML.
    :param platform_file: the platform's YAML; None for the defaults.
    """

    module: ClassVar[str] = "tidegate.jobs.register_schemas"

    def execute(self, context: Context) -> dict[str, Any]:
        value = super().execute(context)
        if why := reason(value):
            raise AirflowSkipException(f"{why}. The next run tries again.")
        return value
