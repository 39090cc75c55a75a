"""A pipeline's life: made, started, stopped, moved, deleted, and how it feels."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from tidegate.api.models.actions import Finding, TableName, Text
from tidegate.api.models.base import Body, View


class CreateRequest(Body):
    """A new pipeline."""

    config: str = Field(
        max_length=200_000,
        description="pipeline.yaml as text; write a password as `${TIDEGATE_SOURCE_…}`, or name a"
        " `connection_id`. Other variables of the server are refused, unless whoever runs it"
        " allowed them.",
        examples=[
            "pipeline_id: shop\nsource:\n  host: db.example.com\n  database: shop\n"
            "  password: ${TIDEGATE_SOURCE_SHOP}\n  tables: [public.orders]\n"
        ],
    )
    offline: bool = Field(False, description="Do not ask the source whether it is ready.")
    dry_run: bool = False


class Created(View):
    pipeline_id: str
    status: Literal["created", "planned"]
    findings: list[Finding]


class Deleted(View):
    pipeline_id: str
    status: Literal["deleted", "planned"]


class SayRequest(Body):
    """Start or stop."""

    reason: Text = Field("by the HTTP API", min_length=1)


class TableOffset(View):
    """Where one table stands."""

    table: str
    position: str | None = None
    lsn: str | None = Field(None, examples=["0/16B3748"])
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    gate: str
    lowest: str | None = Field(None, description="The lowest position it may be set to.")
    needs: str | None = None


class Offsets(View):
    """Where a pipeline stands."""

    pipeline_id: str
    captured_through: str | None = None
    captured_lsn: str | None = None
    captured_at: datetime | None = None
    tables: list[TableOffset]


class OffsetRequest(Body):
    """Set a table's position. Back: changes are applied again. Forward: they are left out."""

    table: TableName
    position: str = Field(
        max_length=200, examples=["0/16B3748"], description="A position, or an LSN."
    )
    skip: bool = Field(False, description="Forward is meant: the table then needs a sweep.")
    reason: Text | None = None
    expect: str | None = Field(
        None,
        max_length=200,
        description="`from_position` as the plan showed it: if the table has moved since, nothing"
        " is done (409).",
    )


class Move(View):
    """What setting a position would do."""

    table: str
    direction: Literal["replay", "skip", "none"]
    from_position: str
    to_position: str
    changes: int = Field(description="Changes that would be applied again, or left out.")
    first_at: datetime | None = None
    last_at: datetime | None = None
    says: str = Field(examples=["3 changes are applied again to public.orders"])


class Component(View):
    """One part."""

    name: str = Field(examples=["catalog"])
    status: Literal["ok", "degraded", "failed"]
    detail: str
    hint: str | None = None
    seconds: float


class ConnectState(View):
    state: Literal["RUNNING", "PAUSED", "FAILED", "UNASSIGNED"]


class SourceHealth(View):
    """The source and our place in its log, and what reads it, in the words of Kafka Connect."""

    connector: ConnectState
    tasks: list[ConnectState]


class SinkHealth(View):
    sink_id: str = Field(examples=["lake"])
    status: Literal["running", "stopped", "failed"]


class PartitionLag(View):
    """One table's distance from what was captured."""

    topic: str = Field(examples=["cdc.public.orders"])
    partition: int = Field(description="Always 0: a source has one log.")
    lag: int | None = Field(description="Bytes of the source's log; null where not known.")
    offset: int | None = Field(description="The applied position as a number; null before one.")


class Health(View):
    """All parts; the worst of them is the whole's."""

    pipeline_id: str | None = None
    status: Literal["ok", "degraded", "failed"]
    components: list[Component]
    source: SourceHealth | None = None
    sinks: list[SinkHealth] = Field([])
    consumer_lag: list[PartitionLag] = Field([])
