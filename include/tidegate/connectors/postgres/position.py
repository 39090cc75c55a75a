"""PostgreSQL's epoch: one cluster, one slot, from the slot's first consistent point on."""

from __future__ import annotations

from tidegate.envelope.position import Position, boundary
from tidegate.errors import FatalError


def epoch_of(system_identifier: str, consistent_point: int) -> str:
    return f"{system_identifier}-{consistent_point:016X}"


def start_of(system_identifier: str, consistent_point: int) -> Position:
    """The first boundary of a new epoch."""
    return boundary(epoch_of(system_identifier, consistent_point), consistent_point)


def check_system(epoch: str, system_identifier: str, tables: tuple[str, ...]) -> None:
    """Refuse another cluster under the same address: its LSNs mean something else."""
    known = epoch.partition("-")[0]
    if known != system_identifier:
        raise FatalError(
            "source.other_system",
            f"the source is PostgreSQL system {system_identifier}, but the change log was taken"
            f" from system {known}",
            hint=way_back(tables),
        )


def way_back(tables: tuple[str, ...]) -> str:
    """What to do when the log's continuation is gone."""
    return (
        "changes after the last captured position are not in the source's log any more:"
        " `tidegate recover` begins a new log and sweeps"
        f" {', '.join(tables) or 'every table'} (--dry-run says which, and why)"
    )
