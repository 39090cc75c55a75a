"""``completion``: what a shell needs to complete commands, options and pipelines."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.invocation import speaking
from tidegate.cli.options import AsJson, Debug

if TYPE_CHECKING:
    from rich.console import Console

PROGRAM = "tidegate"
VARIABLE = "_TIDEGATE_COMPLETE"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    app.command()(completion)


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.", show_default=False)],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Print the script that makes a shell complete; add it to what the shell reads at its start.

    bash: eval "$(tidegate completion bash)" in ~/.bashrc. zsh: the same in ~/.zshrc, after
    compinit. fish: tidegate completion fish > ~/.config/fish/completions/tidegate.fish
    """
    with speaking("completion", as_json, debug) as output:
        from typer.completion import get_completion_script  # type: ignore[attr-defined]

        script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value)
        output.finish({"shell": shell.value, "script": script}, _render)


def prepare() -> None:
    """Make the shells known; done where one asks, because the tree has no options for it."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()


def _render(console: Console, result: dict[str, str]) -> None:
    console.file.write(result["script"] + "\n")
