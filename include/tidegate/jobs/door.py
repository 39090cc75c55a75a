"""The frame around every job process: arguments, secrets, session, result, exit code.

A file in ``spark_jobs/`` is a door: it names the job and its own arguments, and calls :func:`main`.
The job itself is a function of a :class:`Call`; what it returns goes to ``--result``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.secrets import apply_secrets, read_secrets_file
from tidegate.errors import STOPPED_CODE, ExitCode, RetriableError, exit_code
from tidegate.jobs.disclosure import as_tidegate_error, frames
from tidegate.jobs.lifeline import STOPPED_STATUS, Stopped, end_with_owner, stop_on_signals
from tidegate.jobs.result import JobResult, plain, write_result
from tidegate.observability import log
from tidegate.observability.progress import LogProgress, Progress

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """What a job is given."""

    pipeline: PipelineConfig
    platform: PlatformConfig
    run: str
    tables: tuple[str, ...] | None  # None: all of the pipeline
    options: argparse.Namespace
    progress: Progress
    spark: Any = None


Job = Callable[[Call], Any]


def main(
    job: Job,
    *,
    name: str,
    options: Callable[[argparse.ArgumentParser], None] | None = None,
    spark: bool = True,
    argv: Sequence[str] | None = None,
) -> NoReturn:
    """Run ``job`` and end the process with the exit code of what happened."""
    arguments = _parser(name, options).parse_args(argv)
    log.setup()
    stop_on_signals()
    end_with_owner()
    sys.exit(_run(job, name, arguments, spark))


def _parser(
    name: str, options: Callable[[argparse.ArgumentParser], None] | None
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=name, allow_abbrev=False)
    parser.add_argument("--pipeline", type=Path, required=True)
    parser.add_argument("--platform", default="none", help="a file, or none for the defaults")
    parser.add_argument("--run", required=True)
    parser.add_argument("--tables", nargs="*", default=None, help="all if not given")
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--secrets", type=Path, help="0600, deleted once read")
    if options is not None:
        options(parser)
    return parser


def _run(job: Job, name: str, arguments: argparse.Namespace, spark: bool) -> int:
    started = time.monotonic()

    def finish(result: dict[str, Any], error: BaseException | None) -> None:
        reason = as_tidegate_error(error) if error else None
        outcome = JobResult(name, arguments.run, time.monotonic() - started, result, reason)
        write_result(arguments.result, outcome)

    try:
        result = plain(job(_call(name, arguments, spark)))
    except Stopped as stopped:
        _log.warning("%s was stopped (%s)", name, stopped)
        finish({}, _stopped(name))
        return STOPPED_STATUS
    except Exception as error:  # noqa: BLE001 - the process boundary: everything becomes a result
        reason = as_tidegate_error(error)
        if reason.code == STOPPED_CODE:  # somebody's wish, not a failure
            _log.info("%s: %s", name, reason.message)
            finish({}, reason)
            return int(ExitCode.OK)
        for line in frames(error) if reason is not error else ():
            _log.error(line)
        _log.error("%s: %s", name, reason)
        finish({}, reason)
        return int(exit_code(reason))
    result = result if isinstance(result, dict) else {"value": result}
    finish(result, None)
    return int(ExitCode.OK)


def _stopped(name: str) -> RetriableError:
    return RetriableError(
        "job.stopped", f"{name} was stopped by a signal", hint="the next run goes on from here"
    )


def _call(name: str, arguments: argparse.Namespace, spark: bool) -> Call:
    secrets = read_secrets_file(arguments.secrets) if arguments.secrets else None
    # With a secrets file the starter has resolved the source's variables; they need not exist here.
    pipeline = load_pipeline(arguments.pipeline, resolve_secrets=secrets is None)
    platform = load_platform(None if arguments.platform == "none" else arguments.platform)
    pipeline = apply_secrets(pipeline, secrets)
    session = None
    if spark:
        from tidegate.spark.session import spark_session

        session = spark_session(platform, pipeline, app_name=f"{name} {pipeline.pipeline_id}")
    tables = tuple(arguments.tables) if arguments.tables is not None else None
    return Call(pipeline, platform, arguments.run, tables, arguments, LogProgress(), session)
