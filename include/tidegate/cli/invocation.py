"""One run of one command: configuration in, result or error out, exit code."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import typer

from tidegate.cli.fail_on import Trouble, found
from tidegate.cli.output import Output, Render
from tidegate.errors import STOPPED_CODE, ConfigError, ExitCode, TidegateError, exit_code
from tidegate.observability import caller, log

INTERRUPTED: Final = 130
"""What shells expect of a process that SIGINT ended."""

if TYPE_CHECKING:
    from tidegate.config.pipeline import PipelineConfig
    from tidegate.config.platform import PlatformConfig


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a command works with."""

    output: Output
    pipeline: PipelineConfig
    platform: PlatformConfig
    file: Path

    def finish(
        self,
        result: Any,
        render: Render,
        *,
        failed: bool = False,
        fail_on: frozenset[Trouble] = frozenset(),
    ) -> None:
        """Print the result; a failed one, or one with trouble that is asked for, ends the process
        with the runtime exit code."""
        from tidegate.jobs.result import plain

        trouble = found(plain(result), fail_on) if fail_on else ()
        self.output.finish(result, render, ok=not (failed or trouble))
        for told in trouble:
            self.output.note(f"--fail-on {told}")
        if failed or trouble:
            raise typer.Exit(int(ExitCode.RUNTIME))

    def tables(self, wanted: Iterable[str] | None) -> tuple[str, ...] | None:
        """Table names as the pipeline spells them; None for all."""
        from tidegate.control.tables import known_tables

        return known_tables(self.pipeline, wanted)

    def refuse_stopped(self, *, unless: bool = False) -> None:
        """End quietly if the pipeline is stopped, before a Spark session is started in vain."""
        if unless:
            return
        from tidegate.lake.catalog import open_catalog
        from tidegate.lake.pauses import refuse_stopped

        refuse_stopped(open_catalog(self.platform, self.pipeline), self.pipeline)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before something that cannot be taken back."""
        confirm(self.output, question, yes=yes)


def confirm(output: Output, question: str, *, yes: bool) -> None:
    """Ask; whoever cannot be asked must have said --yes."""
    if yes:
        return
    if output.as_json or not output.err.is_terminal or not os.isatty(0):
        raise ConfigError("cli.not_confirmed", f"{question} Nobody was asked.", hint="say --yes")
    if not typer.confirm(question, err=True):
        raise typer.Exit(int(ExitCode.RUNTIME))


@contextmanager
def invocation(
    command: str,
    pipeline: Path,
    platform: Path | None,
    as_json: bool,
    debug: bool,
    *,
    source: bool = True,
) -> Iterator[Invocation]:
    """What a command on a pipeline works with.

    ``source=False`` is for commands that only look at the lake: the source's password is then not
    needed, and not resolved.
    """
    with speaking(command, as_json, debug) as output:
        from tidegate.config.folder import find_pipeline

        file = find_pipeline(pipeline)
        yield Invocation(output, *_configuration(file, platform, source), file)


@contextmanager
def speaking(command: str, as_json: bool, debug: bool) -> Iterator[Output]:
    """A command's voice; whatever is raised becomes an error and an exit code."""
    output = Output(command, as_json=as_json, debug=debug)
    level = logging.INFO if debug or log.for_machines() else logging.WARNING
    log.setup(level=level, stream=cast(TextIO, output.err.file))
    try:
        with caller.acting_as(caller.this_user(caller.Surface.CLI)):
            yield output
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:  # `tidegate … | head`
        raise typer.Exit(int(ExitCode.RUNTIME)) from None
    except KeyboardInterrupt:
        output.note("stopped")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001 - the process boundary: everything becomes an error
        if isinstance(error, TidegateError) and error.code == STOPPED_CODE:
            output.stopped(error)  # somebody's wish: the command ends well, having done nothing
            return
        output.fail(error)
        raise typer.Exit(int(exit_code(error))) from None
    finally:
        log.setup(stream=sys.__stderr__)
        output.close()


def _configuration(
    pipeline: Path, platform: Path | None, source: bool
) -> tuple[PipelineConfig, PlatformConfig]:
    from tidegate.config.loader import load_pipeline, load_platform
    from tidegate.config.problems import ConfigProblems, Problem
    from tidegate.config.secrets import apply_secrets, secrets_from_environment

    problems: list[Problem] = []
    loaded, infrastructure = None, None
    try:
        loaded = load_pipeline(pipeline, resolve_secrets=source)
    except ConfigProblems as error:
        problems += error.problems
    try:
        infrastructure = load_platform(platform)
    except ConfigProblems as error:
        problems += error.problems
    if loaded is None or infrastructure is None:
        raise ConfigProblems(problems)
    if source and loaded.source.connection_id is not None:
        loaded = apply_secrets(loaded, secrets_from_environment(loaded.source.connection_id))
    return loaded, infrastructure


def run_id(verb: str) -> str:
    """Names one run; branches carry it, so it keeps to letters, digits and ``_``."""
    return f"{verb}_{uuid.uuid4().hex[:12]}"


def actor() -> str:
    """Who gave the command, for the gate's timeline."""
    return str(caller.current())
