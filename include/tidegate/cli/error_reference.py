"""The list of error codes, found in the source text: what is raised is what is documented."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import tidegate
from tidegate import errors
from tidegate.errors import TidegateError

_INTRODUCTION = """\
# Error codes

<!-- Written by `python docs/generate.py` from the source text. Do not edit. -->

A code is `area.reason` and stays the same from release to release. The class says how one recovers:

| class | meaning | decision | exit code |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, order=True)
class Raised:
    """One place that raises an error."""

    code: str
    kind: str
    message: str
    hint: str
    module: str


def reference() -> str:
    """``docs/reference/errors.md``."""
    kinds = _kinds()
    lines = [
        f"| `{name}` | {_summary(kind)} | {kind.decision.value} | {int(kind.exit_code)} |"
        for name, kind in kinds.items()
    ]
    areas: dict[str, list[Raised]] = defaultdict(list)
    for raised in sorted(set(found())):
        areas[raised.code.partition(".")[0]].append(raised)
    parts = [_INTRODUCTION + "\n".join(lines) + "\n"]
    for area, entries in sorted(areas.items()):
        parts.append(f"## `{area}`\n\n" + "\n".join(_entries(entries)))
    return "\n".join(parts).rstrip() + "\n"


def found(root: Path | None = None) -> Iterator[Raised]:
    """Every error with a constant code under ``root``."""
    root = root or Path(tidegate.__file__).parent
    for path in sorted(root.rglob("*.py")):
        module = ".".join(("tidegate", *path.relative_to(root).with_suffix("").parts))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from _in_module(tree, module)


def _in_module(tree: ast.Module, module: str) -> Iterator[Raised]:
    shared = {name: text for name, text in vars(errors).items() if isinstance(text, str)}
    constants = shared | dict(_constants(tree))
    kinds = set(_kinds()) | set(_subclasses(tree))
    for owner, call in _calls(tree, None):
        kind = _kind(call, owner, kinds)
        code = _text(call.args[0], constants) if kind and call.args else None
        if kind is None or code is None or "." not in code:
            continue
        message = _text(call.args[1], constants) if len(call.args) > 1 else ""
        hint = next((_text(k.value, constants) for k in call.keywords if k.arg == "hint"), "")
        yield Raised(code, kind, message or "", hint or "", module)


def _calls(node: ast.AST, owner: str | None) -> Iterator[tuple[str | None, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.ClassDef) else owner
        if isinstance(child, ast.Call):
            yield inside, child
        yield from _calls(child, inside)


def _kind(call: ast.Call, owner: str | None, kinds: set[str]) -> str | None:
    function = call.func
    if isinstance(function, ast.Name) and function.id in kinds:
        return function.id
    if isinstance(function, ast.Attribute):
        if function.attr in kinds:
            return function.attr
        if function.attr == "__init__" and owner in kinds:
            return owner
    return None


def _subclasses(tree: ast.Module) -> Iterator[str]:
    known = set(_kinds())
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            if bases & known:
                yield node.name


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, value.value


def _text(node: ast.expr, constants: dict[str, str]) -> str | None:
    """The constant text of an expression; what is filled in at run time becomes ``…``."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.IfExp):
        either = [_text(part, constants) for part in (node.body, node.orelse)]
        return " / ".join(part for part in either if part) or None
    if isinstance(node, ast.BinOp):
        return "".join(_text(part, constants) or "…" for part in (node.left, node.right))
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "…"
            for part in node.values
        )
    return None


def _kinds() -> dict[str, type[TidegateError]]:
    return {
        name: kind
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, TidegateError) and kind is not TidegateError
    }


def _summary(kind: type[TidegateError]) -> str:
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def _entries(entries: Iterable[Raised]) -> Iterator[str]:
    yield "| code | class | what happened | what to do |\n|---|---|---|---|"
    for entry in entries:
        cells = (f"`{entry.code}`", entry.kind, _cell(entry.message), _cell(entry.hint))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;") or "…"
