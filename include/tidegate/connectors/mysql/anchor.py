"""What finds a place again on another server: kept beside the position (``Position.anchor``).

The server and the file of the term it is of, and the transactions at or before it by their global
ids, where the server has such. Versioned, for it is stored.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

from tidegate.connectors.mysql.gtid import Gtids, parse
from tidegate.connectors.mysql.position import Epoch
from tidegate.envelope.position import Position
from tidegate.errors import FatalError

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Anchor:
    """``gtids`` and ``joined`` are texts of the server's own kind; None where it has no GTIDs."""

    server: str
    file: int  # in which this server's log was joined, and when that file began
    born: int
    gtids: str | None = None  # at or before the place
    joined: str | None = None  # what the terms before had captured: this server's log has it too

    @classmethod
    def of(cls, position: Position) -> Anchor:
        """A position without one is of the epoch's first term, and was noted before GTIDs were."""
        if position.anchor is None:
            epoch = Epoch.parse(position.epoch)
            return cls(epoch.server, epoch.file, epoch.born)
        body = json.loads(position.anchor)
        if body.pop("v", None) != VERSION:
            raise FatalError(
                "position.anchor",
                "the change log's position was noted by another release of Tidegate",
                hint="use the release that wrote it, or a newer one",
            )
        return cls(**body)

    def __str__(self) -> str:
        told = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({"v": VERSION, **told}, separators=(",", ":"))

    def at(self, gtids: Gtids | None) -> Anchor:
        return replace(self, gtids=None if gtids is None else str(gtids))

    @property
    def is_mariadb(self) -> bool:
        return len(self.server) != len("00000000-0000-0000-0000-000000000000")

    @property
    def known(self) -> Gtids | None:
        """The transactions at or before the place."""
        return None if self.gtids is None else parse(self.gtids, mariadb=self.is_mariadb)

    @property
    def before(self) -> Gtids | None:
        """What this server's log repeats of earlier terms."""
        return None if self.joined is None else parse(self.joined, mariadb=self.is_mariadb)
