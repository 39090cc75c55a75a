"""The CLI reference, written from the command tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from tidegate.errors import ExitCode

_INTRODUCTION = """\
# Command line

<!-- Written by `python docs/generate.py` from the command tree in tidegate.cli. Do not edit. -->

A PIPELINE is the name of a pipeline in the pipelines folder (`TIDEGATE_PIPELINES_DIR`, by default
`include/config/pipelines`) or the path of a file. Every command takes `--platform-config`, `--json`
and `--debug`; `tidegate completion bash` (or zsh, fish) prints what a shell needs to complete.
Results go to stdout, progress and errors to stderr. With `--json` stdout holds one document and
nothing else: `{"ok": true, "command": …, "result": …}`, or `{"ok": false, "command": …, "error":
{"kind", "code", "message", "hint", …}}`. What is asked of a stopped pipeline does nothing and ends
well, with the status `stopped`. An error says what happened, why, and what to do;
[errors.md](errors.md) lists the codes.

| exit code | meaning |
|---|---|
"""
_EXIT_CODES = {
    ExitCode.OK: "done",
    ExitCode.RUNTIME: "failed while running, or verification found a difference",
    ExitCode.VALIDATION: "wrong configuration or arguments, or the source is not ready",
    ExitCode.ENVIRONMENT: "the machine lacks something: Java, a package, a writable directory",
}
_SHARED = frozenset({"pipeline", "platform_config", "as_json", "debug", "help"})


def reference(app: typer.Typer) -> str:
    """``docs/reference/cli.md``."""
    codes = "\n".join(f"| {int(code)} | {text} |" for code, text in _EXIT_CODES.items())
    root: Any = typer.main.get_command(app)
    parts = [_INTRODUCTION + codes + "\n", *_commands(root, "tidegate")]
    return "\n".join(parts).rstrip() + "\n"


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        here = f"{path} {name}"
        if hasattr(command, "commands"):
            yield from _commands(command, here)
        else:
            yield _command(command, here)


def _command(command: Any, path: str) -> str:
    options = [p for p in command.params if p.name not in _SHARED and p.param_type_name == "option"]
    usage = " ".join(_usage(option) for option in options)
    lines = [f"## `{path}`\n", f"    {path}{_argument(command)} {usage}".rstrip() + "\n"]
    lines.append(_prose(command.help or ""))
    if options:
        lines += ["\n| option | default | meaning |", "|---|---|---|"]
        lines += [_option(option) for option in options]
    return "\n".join(lines) + "\n"


def _argument(command: Any) -> str:
    names = [p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument"]
    return "".join(f" {name}" for name in names)


def _usage(option: Any) -> str:
    text = option.opts[0] + ("" if option.is_flag else f" {option.metavar or _kind(option)}")
    return text if option.required else f"[{text}]" + ("…" if option.multiple else "")


def _option(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    help_text = (option.help or "").replace("|", "\\|")
    return f"| {names} | {_default(option)} | {help_text} |"


def _default(option: Any) -> str:
    if option.required:
        return "*required*"
    return "–" if option.default in (None, False, ()) else f"`{option.default}`"


def _kind(option: Any) -> str:
    return str(option.name).rpartition("_")[2].upper()


def _prose(text: str) -> str:
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
