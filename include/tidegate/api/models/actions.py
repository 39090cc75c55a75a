"""What can be asked for, and what was done."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from tidegate.api.models.base import Body, Facts, SnapshotId, View, example
from tidegate.api.models.status import Gate, Verified

TableName = Annotated[str, Field(min_length=1, max_length=200, examples=["public.orders"])]
Text = Annotated[str, Field(max_length=500)]
Tables = Annotated[
    list[TableName] | None,
    # An empty selection is a mistake, not "all".
    Field(min_length=1, max_length=1000, description="null: all of the pipeline."),
]


class SweepRequest(Body):
    """Re-read tables in full."""

    model_config = example(tables=["public.orders"], dry_run=True, reason="after the migration")
    tables: Tables = None
    where: Text | None = Field(
        None,
        examples=["id >= 100 and id < 200"],
        description="Only these keys; for one table with one key column.",
    )
    fresh: bool = Field(False, description="Do not resume what a killed sweep has left.")
    dry_run: bool = Field(False, description="Say what would be done, do nothing.")
    reason: Text | None = None


class VerifyRequest(Body):
    """Compare source and lake."""

    model_config = example(tables=["public.orders"], sample="5%")
    tables: Tables = None
    sample: str | None = Field(
        None,
        pattern=r"^([0-9]{1,3}(\.[0-9]{1,3})?%?|changed)$",
        description="A share of the keys; or only what changed since every row was found equal.",
        examples=["5%", "changed"],
    )
    repair: bool = False
    dry_run: bool = False


class MaintainRequest(Body):
    """Compact, rewrite manifests, expire, remove orphans: what is due."""

    model_config = example(tables=["public.orders"], force=True)
    tables: Tables = None
    force: bool = Field(False, description="Whether due or not; ages are still respected.")
    dry_run: bool = False


class RollbackRequest(Body):
    """Go back to a snapshot."""

    model_config = example(snapshot_id="4523918127411871132", dry_run=True)
    snapshot_id: SnapshotId
    force: bool = Field(False, description="Even if the change log cannot replay from there.")
    dry_run: bool = False


class LetterChoice(Body):
    """Which dead letters; what is left out chooses all."""

    model_config = example(tables=["public.orders"], codes=["apply.cast_failed"], dry_run=True)
    tables: Tables = None
    event_ids: list[Annotated[str, Field(max_length=64)]] | None = Field(
        None, min_length=1, max_length=1000
    )
    codes: list[Annotated[str, Field(max_length=100)]] | None = Field(
        None, min_length=1, max_length=100
    )
    dry_run: bool = False


class GateRequest(Body):
    """Hold or open gates."""

    model_config = example(tables=["public.orders"], reason="the source is being repaired")
    tables: Tables = None
    reason: Text = Field(min_length=1, description="It stands in the gate's timeline.")


class OpenRequest(GateRequest):
    abandon: bool = Field(False, description="Overrule a sweep; its branch is not published.")


class ApproveRequest(Body):
    """Let the next held schema of a table through."""

    model_config = example(renames={"mail": "email"}, reason="renamed in release 12", dry_run=True)
    renames: dict[str, str] = Field({}, description="Old column → new column.", max_length=1000)
    casts: dict[str, str] = Field({}, description="Column → lake type.", max_length=1000)
    reason: Text = ""
    dry_run: bool = False


class Approved(View):
    """What an approval did, or would do."""

    table: str
    schema_id: str | None = None
    from_position: str | None = None
    dry_run: bool
    statements: list[str] = Field([])
    opened: list[str] = Field([])
    next_held: str | None = None


class Gates(View):
    gates: list[Gate]


class Letter(View):
    """A dead letter, without its values."""

    table: str
    event_id: str
    role: Literal["failed", "waiting"]
    op: str
    position: str
    code: str
    message: str
    first_seen: datetime
    last_seen: datetime
    attempts: int


class LetterDetail(View):
    """A dead letter with the change it holds."""

    letter: Letter
    key: list[str | None]
    schema_id: str
    committed_at: datetime | None = None
    before: dict[str, str | None] | None = None
    after: dict[str, str | None] | None = None
    unchanged: list[str] = Field([])
    headers: dict[str, str] = Field(
        {},
        description="The platform specification's facts: dlq.source_topic, dlq.source_partition,"
        " dlq.source_offset, dlq.error_type, dlq.error_message, dlq.stacktrace, dlq.timestamp,"
        " dlq.sink_id.",
    )


class Discarded(View):
    """Letters that are never applied, or (`dry_run`) would not be."""

    discarded: bool
    letters: list[Letter]


class RunView(View):
    """Work that was started."""

    id: str = Field(examples=["shop-0f3a9c1d2b4e5f60"])
    verb: str = Field(examples=["sweep"])
    pipeline: str = Field(examples=["shop"])
    options: Facts = Field({})
    state: Literal["queued", "running", "done", "failed"]
    started_by: str = Field(examples=["ann (api)"])
    started_at: datetime | None = None
    ended_at: datetime | None = None
    link: str | None = Field(None, description="Where to watch it: the Dag run's page.")
    result: Facts | None = None
    error: Facts | None = None
    log: list[str] = Field([], description="The end of its log.")


class AuditEntry(View):
    """Who did what."""

    entry: str
    action: str
    actor: str
    surface: str
    tables: list[str]
    at: datetime
    ended_at: datetime | None = None
    outcome: str
    details: Facts


class Verification(View):
    """What is proven of one table, and how its last comparison ended."""

    table: str
    verified_through: Verified | None = None
    last: Facts | None = None


class Finding(View):
    """One thing that is, or will be, in the way."""

    code: str
    severity: Literal["error", "warning", "info"]
    table: str | None = None
    message: str
    fix: str | None = None


class ValidationReport(View):
    pipeline_id: str
    ok: bool
    source_checked: bool
    tables: list[str]
    findings: list[Finding]


class ValidateRequest(Body):
    """A pipeline's file, to be looked at and not kept; or the name of a known pipeline."""

    config: str | None = Field(None, max_length=200_000, description="pipeline.yaml as text.")
    name: str | None = Field(None, max_length=40, description="A pipeline the server has.")

    @model_validator(mode="after")
    def _one(self) -> ValidateRequest:
        if (self.config is None) == (self.name is None):
            raise ValueError("give config or name")
        return self
