"""What endpoints are given: the pipeline, the caller, the runner."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Header, Path, Request

from tidegate.api.access import Access, access_of, caller_of
from tidegate.api.looks import SourceLooks
from tidegate.api.models.actions import RunView
from tidegate.api.pipelines import Pipelines, Subject
from tidegate.api.runner import Run, Runner
from tidegate.control.tables import one_table
from tidegate.observability.caller import Caller

BASE: Final = "/api/v1/cdc"
ONE: Final = "/connectors/{name}"
TABLE: Final = "/connectors/{name}/tables/{table}"

Name = Annotated[str, Path(pattern=r"^[a-z][a-z0-9_]{0,39}$", examples=["shop"])]


def pipelines(request: Request) -> Pipelines:
    found: Pipelines = request.app.state.pipelines
    return found


def runner(request: Request) -> Runner:
    found: Runner = request.app.state.runner
    return found


def looks(request: Request) -> SourceLooks:
    found: SourceLooks = request.app.state.looks
    return found


def subject(name: Name, known: Annotated[Pipelines, Depends(pipelines)]) -> Subject:
    return known.get(name)


def table(
    table: Annotated[str, Path(max_length=200, examples=["public.orders"])],
    about: Annotated[Subject, Depends(subject)],
) -> str:
    return one_table(about.pipeline, table)


Looks = Annotated[SourceLooks, Depends(looks)]
Known = Annotated[Pipelines, Depends(pipelines)]
About = Annotated[Subject, Depends(subject)]
TableOf = Annotated[str, Depends(table)]
Actor = Annotated[Caller, Depends(caller_of)]
Admitted = Annotated[Access, Depends(access_of)]
Work = Annotated[Runner, Depends(runner)]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=8,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="The same key starts the work once; with another body it is refused (409).",
    ),
]


def run_view(run: Run) -> RunView:
    return RunView(
        id=run.id,
        verb=run.work.verb.value,
        pipeline=run.work.pipeline,
        options=dict(run.work.options),
        state=run.state.value,
        started_by=run.started_by,
        started_at=run.started_at,
        ended_at=run.ended_at,
        link=run.link,
        result=run.result,
        error=run.error,
        log=list(run.log),
    )
