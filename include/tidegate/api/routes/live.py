"""``WS /api/v1/cdc/status``: all pipelines at once, then each one that changes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from tidegate.api.access import PROTOCOL, Role, access_of, needs, still_authorized
from tidegate.api.live import OVERVIEW, LiveStatus, State, changes, line_changes

router = APIRouter(tags=["live"])
ASK_AGAIN_SECONDS: Final = 30.0
"""A token that was revoked or has run out ends the socket within this time."""


@router.websocket("/status")
@needs(Role.READ)
async def watch(socket: WebSocket) -> None:
    """First ``{"type": "snapshot", "pipelines": {name: {"status": …}}}``, then
    ``{"type": "change", "pipelines": {…}}`` with those that changed; null: gone. In between
    ``{"type": "pulse"}``: nothing changed, and somebody is there to know.

    With ``?view=overview`` each is ``{"overview": …}``, as ``GET /overview`` has it; a change has
    the figures without ``lines``, and beside them ``lines`` by table with those that changed."""
    offered = [one.strip() for one in socket.headers.get("sec-websocket-protocol", "").split(",")]
    await socket.accept(PROTOCOL if PROTOCOL in offered else None)
    listening = asyncio.ensure_future(_until_closed(socket))
    try:
        await _tell(socket, listening)
    except WebSocketDisconnect:
        return
    finally:
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


async def _tell(socket: WebSocket, closed: asyncio.Future[None]) -> None:
    live: LiveStatus = socket.app.state.live
    glance = socket.query_params.get("view") == OVERVIEW
    read, compare = (live.overviews, line_changes) if glance else (live.current, changes)
    sees = access_of(socket).sees
    seen = _visible(await read(), sees)
    await socket.send_json(_message("snapshot", seen))
    asked = time.monotonic()
    while True:
        done, _ = await asyncio.wait({closed}, timeout=live.every)
        if done:
            return
        if time.monotonic() - asked >= ASK_AGAIN_SECONDS:
            sees = (await still_authorized(socket, Role.READ)).sees
            asked = time.monotonic()
            await socket.send_json(_message("pulse", {}))
        now = _visible(await read(), sees)
        told = compare(seen, now)
        if told:
            await socket.send_json(_message("change", told))
        seen = now


def _visible(state: State, sees: Callable[[str], bool]) -> State:
    return {name: one for name, one in state.items() if sees(name)}


async def _until_closed(socket: WebSocket) -> None:
    """What a client says is not listened to; that it leaves is."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return


def _message(kind: str, pipelines: Any) -> dict[str, Any]:
    return {"type": kind, "pipelines": pipelines}
