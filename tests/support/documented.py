"""Commands of the documentation's shell blocks, and a shell that runs them.

A block that cannot run here says so in the Markdown, right before it:
``<!-- not run: the reason -->``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli import ENTRY, INCLUDE

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
_BLOCK = re.compile(
    r"^(?:[ ]*<!-- not run: (?P<reason>[^\n]+?) -->\n)?"
    r"[ ]*```(?:bash|console)\n(?P<body>.*?)^[ ]*```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Command:
    """One line (with what a backslash continues) of a shell block."""

    page: str
    text: str
    not_run: str | None

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def commands(page: Path) -> Iterator[Command]:
    """In the order of the page."""
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        body = block["body"].replace("\\\n", " ")
        lines = [line.strip() for line in body.splitlines()]
        if any(line.startswith("$ ") for line in lines):  # the rest is what was answered
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in filter(None, lines):
            text = " ".join(line.split("  #")[0].split())
            yield Command(str(page.relative_to(ROOT)), text, block["reason"])


def until_it_speaks(words: list[str], folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Start what runs until a signal, wait for its first line, and end it."""
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, *words],
        cwd=folder,
        env=os.environ | variables | {"PYTHONPATH": str(INCLUDE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.terminate()
        said += process.stdout.read()
        return process.wait(120), said
