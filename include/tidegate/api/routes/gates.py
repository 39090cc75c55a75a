"""Gates: shown, held, opened."""

from __future__ import annotations

from fastapi import APIRouter

from tidegate.api.access import Role, needs
from tidegate.api.models.actions import GateRequest, Gates, OpenRequest
from tidegate.api.routes.subject import ONE, About, Actor
from tidegate.control import gates
from tidegate.observability.caller import acting_as

router = APIRouter(tags=["gates"])


@router.get(f"{ONE}/gates")
@needs(Role.READ)
def get_gates(about: About) -> Gates:
    """Every table's gate: its state, who set it, why, since when."""
    return Gates.model_validate(gates.show(about.pipeline, about.platform))


@router.post(f"{ONE}/gates/hold")
@needs(Role.EDIT)
def hold_gates(about: About, body: GateRequest, actor: Actor) -> Gates:
    """Hold tables back; their changes stay in the change log. Holding twice is holding."""
    with acting_as(actor):
        found = gates.hold(
            about.pipeline, about.platform, body.tables, reason=body.reason, actor=str(actor)
        )
    return Gates.model_validate(found)


@router.post(f"{ONE}/gates/open")
@needs(Role.EDIT)
def open_gates(about: About, body: OpenRequest, actor: Actor) -> Gates:
    """Let changes through. A sweep is only overruled with `abandon`."""
    with acting_as(actor):
        found = gates.open_gates(
            about.pipeline,
            about.platform,
            body.tables,
            reason=body.reason,
            actor=str(actor),
            abandon=body.abandon,
        )
    return Gates.model_validate(found)
