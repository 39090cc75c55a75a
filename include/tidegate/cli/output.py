"""Where the CLI writes: results to stdout, everything else to stderr.

The consoles hold descriptors of their own. Whatever a JVM or a library prints to the process's
stdout can be sent elsewhere (see :mod:`tidegate.cli.spark`) without touching them, so ``--json``
output is one JSON document and nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final, TextIO

from rich.console import Console

from tidegate.errors import TidegateError

PIPED_WIDTH: Final = 200
"""Tables written to a file or pipe are not cut to a terminal's 80 columns."""

Render = Callable[[Console, Any], None]


class Output:
    """One command's voice."""

    def __init__(self, command: str, *, as_json: bool = False, debug: bool = False) -> None:
        self.command = command
        self.as_json = as_json
        self.debug = debug
        self.out = _console(1)
        self.err = _console(2)

    def finish(self, result: Any, render: Render, *, ok: bool = True) -> None:
        """The command's result: a document with ``--json``, otherwise what ``render`` draws."""
        if not self.as_json:
            render(self.out, result)
            return
        from tidegate.jobs.result import plain

        self._document({"ok": ok, "command": self.command, "result": plain(result)})

    def fail(self, error: BaseException) -> None:
        """An error: a document with ``--json``, otherwise what, why, and what to do."""
        from tidegate.cli.failures import document, write

        if self.as_json:
            self._document({"ok": False, "command": self.command, "error": document(error)})
        else:
            write(self.err, error)
        if self.debug:
            from tidegate.jobs.disclosure import describe, frames

            for line in (*frames(error), describe(error)):
                self.err.print(line, style="dim", markup=False, highlight=False)

    def stopped(self, error: TidegateError) -> None:
        """The pipeline is stopped: a result, not an error."""
        told = {"status": "stopped", "reason": error.message, "hint": error.hint}
        if self.as_json:
            self._document({"ok": True, "command": self.command, "result": told})
            return
        self.out.print(f"stopped  {error.message}", markup=False, soft_wrap=True)
        self.out.print(f"do       {error.hint}", markup=False, soft_wrap=True)

    def note(self, line: str) -> None:
        """A line about what is going on."""
        self.err.print(line, style="dim", markup=False, highlight=False)

    def close(self) -> None:
        """Nothing is written after this."""
        self.out.file.close()
        self.err.file.close()

    def _document(self, document: dict[str, Any]) -> None:
        text = json.dumps(document, indent=2 if self.out.is_terminal else None, ensure_ascii=False)
        self.out.file.write(text + "\n")
        self.out.file.flush()


def _console(descriptor: int) -> Console:
    file: TextIO = os.fdopen(os.dup(descriptor), "w", encoding="utf-8", buffering=1)
    width = None if file.isatty() else PIPED_WIDTH
    return Console(file=file, width=width, highlight=False, soft_wrap=False)
