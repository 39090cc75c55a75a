"""A YAML file as data, with the line every key stands on.

Duplicate keys are problems here (YAML itself keeps the last one silently), and so is anything that
is not plain data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tidegate.config.problems import ConfigProblems, KeyPath, Problem, dotted
from tidegate.config.yaml_nodes import MERGE, MOST_BYTES, BoundedLoader, BoundPassed
from tidegate.errors import ConfigError


@dataclass(slots=True)
class Document:
    """One file: its data, the line of each path, and what was wrong with the YAML itself."""

    file: str
    data: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: KeyPath) -> int | None:
        """The line of ``path`` or, where it is missing, of what it should stand in."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def problem(self, path: KeyPath, message: str, **more: str | None) -> Problem:
        return Problem(self.file, dotted(path), message, line=self.line(path), **more)


def read_document(path: Path) -> Document:
    """Read one YAML mapping; raises :class:`ConfigProblems` if there is no data to go on with."""
    file = str(path)
    text = _read_text(path)
    try:
        loader = BoundedLoader(text)
        root = loader.get_single_node()
        document = Document(file, {})
        if root is None:
            raise ConfigProblems([Problem(file, "", "the file is empty")])
        if not isinstance(root, MappingNode):
            raise ConfigProblems(
                [Problem(file, "", "the file is not a mapping of keys to values", line=1)]
            )
        data = _Walk(loader, document).mapping(root, (), ())
    except yaml.MarkedYAMLError as error:
        raise ConfigProblems([_syntax(file, error)]) from None  # its text quotes the file (I9)
    except yaml.reader.ReaderError as error:
        message = f"not readable as YAML text ({error.reason})"
        raise ConfigProblems([Problem(file, "", message)]) from None
    document.data = data
    return document


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            message = f"the file is larger than {MOST_BYTES:,} bytes"
            raise ConfigProblems([Problem(str(path), "", message)])
        return text.decode()
    except FileNotFoundError:
        raise ConfigError(
            "config.file_missing",
            f"{path} does not exist",
            hint="check the path; `tidegate validate <pipeline.yaml>` takes the file's name",
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigProblems([Problem(str(path), "", f"not UTF-8 at byte {error.start}")]) from None
    except OSError as error:
        raise ConfigError(
            "config.file_unreadable",
            f"{path} cannot be read: {error.strerror}",
            hint="check the file's owner and mode",
        ) from error


def _syntax(file: str, error: yaml.MarkedYAMLError) -> Problem:
    # Names in the parser's message may be parts of a secret (`password: *abc`): only kinds stay.
    what = re.sub(r"'[^']{2,}'", "'…'", error.problem or "unreadable")
    mark = error.problem_mark or error.context_mark
    if isinstance(error, BoundPassed) and mark is not None:
        return Problem(file, "", what, line=mark.line + 1, allowed=error.note)
    message = f"wrong YAML: {what}"
    if mark is None:
        return Problem(file, "", message)
    return Problem(
        file,
        "",
        f"{message} (column {mark.column + 1})",
        line=mark.line + 1,
        allowed="quote text that holds any of : # * & ! % @ ` { } [ ]",
    )


class _Walk:
    """Builds data from nodes; notes lines and duplicate keys."""

    def __init__(self, loader: BoundedLoader, document: Document) -> None:
        self._loader = loader
        self._document = document

    def value(self, node: Node, path: KeyPath, above: tuple[int, ...]) -> Any:
        self._loader.count(node)
        if isinstance(node, ScalarNode):
            return self._loader.scalar(node)
        if id(node) in above:
            self._document.problems.append(
                self._document.problem(path, "an alias that contains itself")
            )
            return None
        self._loader.enter(node, above)
        if isinstance(node, MappingNode):
            return self.mapping(node, path, above)
        if isinstance(node, SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                at = (*path, index)
                self._document.lines.setdefault(at, item.start_mark.line + 1)
                items.append(self.value(item, at, (*above, id(node))))
            return items
        raise yaml.MarkedYAMLError(problem="unknown node", problem_mark=node.start_mark)

    def mapping(self, node: MappingNode, path: KeyPath, above: tuple[int, ...]) -> dict[str, Any]:
        self._duplicates(node, path)
        data: dict[str, Any] = {}
        for key_node, value_node in self._loader.pairs(node):
            key = self._key(key_node)
            at = (*path, key)
            self._document.lines.setdefault(at, key_node.start_mark.line + 1)
            data[key] = self.value(value_node, at, (*above, id(node)))
        return data

    def _key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode):
            raise yaml.MarkedYAMLError(
                problem="a key that is not text", problem_mark=node.start_mark
            )
        return str(node.value)  # as written: `on:` and `1:` stay what the user sees

    def _duplicates(self, node: MappingNode, path: KeyPath) -> None:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == MERGE:
                continue
            key, line = self._key(key_node), key_node.start_mark.line + 1
            if key in seen:
                at = dotted((*path, key))
                message = f"the key stands twice, first on line {seen[key]}"
                self._document.problems.append(
                    Problem(self._document.file, at, message, line=line, allowed="once")
                )
            seen.setdefault(key, line)
