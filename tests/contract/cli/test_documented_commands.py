"""Every documented command exists, with every option shown; targets exist; links lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tidegate.cli.groups import ShowByDefault
from tidegate.cli.main import app

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_INLINE = re.compile(r"`(tidegate [^`]+)`")
_MAKE = re.compile(r"(?:^|`|&& )make ([a-z][a-z-]*)", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    yield from (" ".join(found.split()) for found in _INLINE.findall(_FENCED.sub("", text)))
    for block in _FENCED.findall(text):
        for line in block.splitlines():
            line = line.strip().removeprefix("$ ")
            if line.startswith("tidegate "):
                yield line


def documented() -> list[Any]:
    found = {(page.relative_to(ROOT), command) for page in PAGES for command in commands(page)}
    return [pytest.param(command, id=f"{page}: {command}") for page, command in sorted(found)]


SPECIFIED = """
cdc validate pipeline.yaml
cdc validate pipeline.yaml --platform-config prod.yaml
cdc deploy pipeline.yaml
cdc deploy pipeline.yaml --platform-config prod.yaml
cdc undeploy pipeline.yaml
cdc undeploy pipeline.yaml --platform-config prod.yaml
cdc health
cdc health --platform-config prod.yaml
cdc consume pipeline.yaml
cdc consume pipeline.yaml --platform-config prod.yaml
cdc run pipeline.yaml
cdc run pipeline.yaml --platform-config prod.yaml
cdc lakehouse snapshots pipeline.yaml
cdc lakehouse query pipeline.yaml --snapshot-id 123
cdc lakehouse rollback pipeline.yaml --snapshot-id 123 --yes
"""
"""The platform specification's commands: ours has another name, its verbs have not."""


def specified() -> list[str]:
    return [line.replace("cdc", "tidegate", 1) for line in SPECIFIED.split("\n") if line]


@pytest.mark.parametrize("line", [*documented(), *specified()])
def test_a_documented_command_exists(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        if words[0].isupper():
            return  # `tidegate COMMAND --help`
        if isinstance(command, ShowByDefault) and words[0] not in command.commands:
            words.insert(0, "show")  # `tidegate offsets shop`
        assert words[0] in command.commands, f"no command {words[0]}"
        command = command.commands[words.pop(0)]
    known = {name for option in command.params for name in option.opts} | {"--help", "--version"}
    for word in words:
        if word.startswith("-"):
            assert word.partition("=")[0] in known, f"{word} is not an option of it"


def targets() -> set[str]:
    """What the Makefile makes."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = re.findall(r"^([a-z][a-z -]*):(?!=)", text, re.MULTILINE)
    return {target for rule in rules for target in rule.split()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_documented_make_target_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    said = "\n".join([*_FENCED.findall(text), *re.findall(r"`[^`\n]+`", _FENCED.sub("", text))])
    assert set(_MAKE.findall(said)) - targets() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_into_the_repository_lead_somewhere(page: Path) -> None:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    wanted = [link for link in _LINK.findall(text) if "://" not in link]
    assert [link for link in wanted if not (page.parent / link).exists()] == []
