"""Global transaction ids, which name a transaction on every server that has it.

MySQL's set names sources and intervals (``<uuid>:1-5:7``). MariaDB's is a place: the last id of
every domain (``<domain>-<server>-<number>``), which within a domain come in the same order on all
servers. ``str`` of either gives the server's own text.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Protocol

MysqlId = tuple[str, int]
"""Source (with its tag, if any) and number."""
MariadbId = tuple[int, int, int]
"""Domain, server and number."""


class Gtids(Protocol):
    """Transactions that were seen, of one of the two kinds."""

    def has(self, gtid: Any) -> bool: ...

    def add(self, gtid: Any) -> None: ...

    def covers(self, other: Any) -> bool:
        """Whether everything in ``other`` is in this one."""
        ...


@dataclass(slots=True)
class MysqlGtids:
    """Per source its intervals, in order and apart: first number, and the one behind the last."""

    sources: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MysqlGtids:
        found = cls()
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            source, *pieces = part.split(":")
            name = source.lower()
            for piece in pieces:
                if not piece[0].isdigit():
                    name = f"{source.lower()}:{piece}"  # a tag: the intervals behind it are its own
                    continue
                first, _, last = piece.partition("-")
                found._put(name, int(first), int(last or first) + 1)
        return found

    def has(self, gtid: MysqlId) -> bool:
        source, number = gtid
        spans = self.sources.get(source, [])
        at = bisect_right(spans, number, key=lambda span: span[0]) - 1
        return at >= 0 and number < spans[at][1]

    def add(self, gtid: MysqlId) -> None:
        source, number = gtid
        spans = self.sources.get(source)
        if spans and spans[-1][1] == number:  # as it nearly always is
            spans[-1] = (spans[-1][0], number + 1)
        else:
            self._put(source, number, number + 1)

    def covers(self, other: MysqlGtids) -> bool:
        """Whether everything in ``other`` is in this one."""
        return all(
            any(low <= first and last <= high for low, high in self.sources.get(source, ()))
            for source, spans in other.sources.items()
            for first, last in spans
        )

    def __str__(self) -> str:
        return ",".join(
            ":".join([source, *(_interval(first, last) for first, last in spans)])
            for source, spans in sorted(self.sources.items())
        )

    def _put(self, source: str, first: int, last: int) -> None:
        joined: list[tuple[int, int]] = []
        for low, high in sorted([*self.sources.get(source, []), (first, last)]):
            if joined and low <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
            else:
                joined.append((low, high))
        self.sources[source] = joined


@dataclass(slots=True)
class MariadbGtids:
    """Per domain the last server and number."""

    domains: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MariadbGtids:
        """Also of a file's list, which names the last of every server: the newest is a domain's."""
        found = cls()
        for part in filter(None, (piece.strip(" []\n") for piece in text.split(","))):
            domain, server, number = (int(piece) for piece in part.split("-"))
            if number >= found.domains.get(domain, (0, 0))[1]:
                found.domains[domain] = (server, number)
        return found

    def has(self, gtid: MariadbId) -> bool:
        domain, _, number = gtid
        return number <= self.domains.get(domain, (0, 0))[1]

    def add(self, gtid: MariadbId) -> None:
        domain, server, number = gtid
        self.domains[domain] = (server, number)

    def covers(self, other: MariadbGtids) -> bool:
        """Whether everything in ``other`` is in this one, if they are copies of one log."""
        return all(self.has((domain, *last)) for domain, last in other.domains.items())

    def __str__(self) -> str:
        return ",".join(f"{domain}-{s}-{n}" for domain, (s, n) in sorted(self.domains.items()))


def _interval(first: int, last: int) -> str:
    return str(first) if last == first + 1 else f"{first}-{last - 1}"


def parse(text: str, *, mariadb: bool) -> Gtids:
    return MariadbGtids.parse(text) if mariadb else MysqlGtids.parse(text)
