"""Ask a person whether a held schema change may go through, in Airflow's own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context, Param

from tidegate.airflow.questions import APPROVE, LEAVE, SchemaAnswer

_PAIR = {"type": "string", "pattern": "^[^=]+=[^=]+$"}


class AskSchemaOperator(HITLOperator):
    """Waits under *Required actions* without a worker; returns the answer and who gave it.

    :param question: a dictionary of ``airflow.questions.questions`` (templated, mapped).
    :param wait_seconds: then the table is left held for now, and the next run asks again.
    """

    template_fields: Sequence[str] = ("question",)
    ui_color = "#fff4d6"

    def __init__(self, *, question: Any, wait_seconds: float, **kwargs: Any) -> None:
        super().__init__(
            subject="May a schema change go through?",
            options=[APPROVE, LEAVE],
            defaults=[LEAVE],
            params=_form(),
            response_timeout=timedelta(seconds=wait_seconds),
            **kwargs,
        )
        self.question = question

    def execute(self, context: Context) -> Any:
        self.subject, self.body = self.question["subject"], self.question["body"]
        self.log.info("%s\n%s", self.subject, self.body)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Back with an answer, or with the default when the time ran out."""
        given = super().execute_complete(context, event)
        form: Mapping[str, Any] = given["params_input"]
        user = given["responded_by_user"]
        answer = SchemaAnswer(
            table=self.question["table"],
            schema_id=self.question["schema_id"],
            chosen=given["chosen_options"][0],
            by=None if user is None else str(user["name"]),
            renames=form.get("rename") or [],
            casts=form.get("cast") or [],
            reason=form.get("reason") or "answered in Airflow",
        )
        self.log.info("%s: %s, by %s", answer.table, answer.chosen, answer.by or "nobody")
        return answer.to_dict()


def _form() -> dict[str, Param]:
    return {
        "rename": Param(
            [],
            type=["array", "null"],
            title="Renames",
            description="old=new, one a line: the lake's column old is new now.",
            items=_PAIR,
            source="task",
        ),
        "cast": Param(
            [],
            type=["array", "null"],
            title="Casts",
            description="column=type, one a line: keep the lake's column, cast new values to it.",
            items=_PAIR,
            source="task",
        ),
        "reason": Param(
            "",
            type=["string", "null"],
            title="Reason",
            description="Stands in the audit trail.",
            source="task",
        ),
    }
