"""Errors as the CLI shows them: what happened, why, what to do; a code to look up."""

from __future__ import annotations

from typing import Any, Final

from rich.console import Console
from rich.text import Text

from tidegate.config.problems import ConfigProblems, Problem
from tidegate.errors import TidegateError
from tidegate.jobs.disclosure import as_tidegate_error, describe

_UNEXPECTED_HINT: Final = "say --debug to see where it happened; please report it"


def known_error(error: BaseException) -> TidegateError:
    """The error as one of ours; the unexpected points to ``--debug``, there is no task log here."""
    known = as_tidegate_error(error)
    if known is error or known.code != "job.unexpected":
        return known
    return type(known)(known.code, known.message, hint=_UNEXPECTED_HINT)


def document(error: BaseException) -> dict[str, Any]:
    """The form ``--json`` prints."""
    known = known_error(error)
    why = cause(error)
    return known.to_dict() | ({"cause": why} if why else {})


def write(console: Console, error: BaseException) -> None:
    """Three lines: what, why, what to do."""
    known = known_error(error)
    if isinstance(known, ConfigProblems):
        write_problems(console, known)
        return
    console.print(
        Text.assemble(("error  ", "bold red"), known.message, (f"  [{known.code}]", "dim")),
        soft_wrap=True,
    )
    console.print(Text.assemble(("why    ", "bold"), cause(error) or _why(known)), soft_wrap=True)
    console.print(Text.assemble(("do     ", "bold green"), known.hint), soft_wrap=True)


def write_problems(console: Console, error: ConfigProblems) -> None:
    """Every problem of a configuration, then the three lines' last two."""
    count = len(error.problems)
    head = f"{count} problem{'' if count == 1 else 's'} in the configuration"
    console.print(
        Text.assemble(("error  ", "bold red"), head, (f"  [{error.code}]", "dim")), soft_wrap=True
    )
    for problem in error.problems:
        console.print(_problem(problem), soft_wrap=True)
    console.print(Text.assemble(("do     ", "bold green"), error.hint), soft_wrap=True)


def cause(error: BaseException) -> str:
    """The chain of causes, as far as it may be shown (I9)."""
    below = error.__cause__
    if below is None:
        return ""
    return describe(below)


def _why(error: TidegateError) -> str:
    kind = type(error).__doc__ or ""
    return kind.splitlines()[0].rstrip(".") if kind else "no further cause is known"


def _problem(problem: Problem) -> Text:
    place = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
    text = Text.assemble("  ", (place, "cyan"), "  ", (problem.path, "bold"))
    text.append(f"  {problem.message}" if problem.path else problem.message)
    for name, value in (
        ("found", problem.found),
        ("allowed", problem.allowed),
        ("nearest", problem.nearest),
    ):
        if value is not None:
            text.append(f"\n      {name:<8} ", style="dim")
            text.append(value, style="green" if name == "nearest" else "")
    return text
