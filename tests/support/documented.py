"""Commands of the documentation's shell blocks, and a shell that runs them.

A block that cannot run here says so in the Markdown, right before it:
``<!-- not run: the reason -->``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


class Shell:
    """One process for many commands: imports, and the JVM, are paid for once."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.documented_shell"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{INCLUDE}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, words: list[str], folder: Path, variables: dict[str, str]) -> tuple[int, str]:
        """Exit code, and everything it said."""
        assert self._process.stdin is not None and self._process.stdout is not None
        order = {"words": words, "folder": str(folder), "variables": variables}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer["code"], answer["said"]

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(60) == 0


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
