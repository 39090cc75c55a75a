"""YAML composed within bounds: a few hundred bytes of aliases, or of brackets, must not take
minutes and gigabytes. Where a bound is passed, a YAML error names the line."""

from __future__ import annotations

from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

MOST_BYTES: Final = 1_000_000
"""Of one file: twenty thousand tables with overrides."""
MOST_NODES: Final = 100_000
"""With every alias written out. Ten thousand tables with overrides stay below."""
DEEPEST: Final = 40
"""The models are eight deep; options of a package's connector may be deeper."""
LONGEST_NUMBER: Final = 100
"""Characters of an unquoted number, date or true/false: Python's own numbers grow without end."""

MERGE: Final = "tag:yaml.org,2002:merge"
_TEXT: Final = "tag:yaml.org,2002:str"

Pairs = list[tuple[Node, Node]]


class BoundPassed(yaml.MarkedYAMLError):
    """The file is YAML, and too much of it."""


class BoundedLoader(yaml.SafeLoader):
    """Composes plain data only, and stops at the bounds."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._written = 0
        self._nodes = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        self._depth += 1
        self._written += 1
        if self._depth > DEEPEST:
            raise _too_deep(self.peek_event())  # type: ignore[no-untyped-call]
        if self._written > 2 * MOST_NODES:  # keys are counted here, and not below
            raise _too_many(self.peek_event())  # type: ignore[no-untyped-call]
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def count(self, node: Node) -> None:
        """Take one more node, one behind an alias included, into what the file becomes."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise _too_many(node)

    def enter(self, node: Node, above: tuple[int, ...]) -> None:
        """Go into a list or mapping below those of ``above``: aliases nest deeper than brackets."""
        if len(above) > DEEPEST:
            raise _too_deep(node)

    def scalar(self, node: ScalarNode) -> object:
        """The value: text, or a number, date or truth as YAML resolves it."""
        if node.tag != _TEXT and len(node.value) > LONGEST_NUMBER:
            raise _passed(
                f"unquoted, and longer than {LONGEST_NUMBER} characters", "quotes around text", node
            )
        try:
            return self.construct_object(node)
        except (ValueError, OverflowError, LookupError, AttributeError):  # 2026-13-01, !!bool x
            raise _wrong("neither a number, a date nor true or false", node) from None

    def pairs(self, node: MappingNode, above: tuple[int, ...] = ()) -> Pairs:
        """A mapping's keys and values, those of its merge keys (``<<``) first and once each."""
        self.enter(node, above)
        merged: dict[str, tuple[Node, Node]] = {}
        own: Pairs = []
        for key, value in node.value:
            if key.tag != MERGE:
                own.append((key, value))
                continue
            # As YAML has it: of several mappings the first to have a key wins.
            for mapping in reversed(self._merged(value, (*above, id(node)))):
                for pair in self.pairs(mapping, (*above, id(node))):
                    self.count(pair[0])
                    merged[str(pair[0].value)] = pair
        return [*merged.values(), *own]

    def _merged(self, value: Node, above: tuple[int, ...]) -> list[MappingNode]:
        found = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for one in found:
            self.count(one)
            if not isinstance(one, MappingNode):
                raise _wrong("<< takes a mapping, or a list of mappings", one)
            if id(one) in above:
                raise _wrong("a mapping that is merged into itself", one)
        return list(found)


def _wrong(problem: str, node: Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _passed(problem: str, way_out: str, place: Any) -> BoundPassed:
    """``place``: a node or an event."""
    return BoundPassed(problem=problem, problem_mark=place.start_mark, note=way_out)


def _too_deep(place: Any) -> BoundPassed:
    return _passed(f"nested deeper than {DEEPEST} levels", "fewer levels", place)


def _too_many(place: Any) -> BoundPassed:
    many = f"more than {MOST_NODES:,} values, those behind aliases counted each time"
    return _passed(many, "fewer aliases, or several pipelines", place)
