"""``health``, ``doctor``: does it work, and if not, what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tidegate.cli import render_pipelines
from tidegate.cli.invocation import invocation, speaking
from tidegate.cli.options import AnyPipeline, AsJson, Debug, PlatformFile
from tidegate.errors import ExitCode

if TYPE_CHECKING:
    from tidegate.cli.output import Output
    from tidegate.config.pipeline import PipelineConfig
    from tidegate.config.platform import PlatformConfig


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    for verb in (health, doctor):
        app.command()(verb)


def health(
    pipeline: AnyPipeline = None,
    platform_config: PlatformFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Catalog and storage; with a pipeline also source, log, writers, gates; Airflow if set up.

    Ends with 1 if a part failed; degraded parts do not stop the work.
    """
    with _asked("health", pipeline, platform_config, as_json, debug) as (output, found, platform):
        from tidegate.control.health import document
        from tidegate.control.health import health as look

        result = look(platform, found)
        shown = document(result) if output.as_json else result
        output.finish(shown, render_pipelines.health, ok=result.ok)
        if not result.ok:
            raise typer.Exit(int(ExitCode.RUNTIME))


def doctor(
    pipeline: AnyPipeline = None,
    platform_config: PlatformFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check Java, Spark, jars, ports, disk, catalog, storage, source and Airflow; say each fix.

    Ends with 3 if something is missing.
    """
    with _asked("doctor", pipeline, platform_config, as_json, debug) as (output, found, platform):
        from tidegate.control.doctor import doctor as look

        result = look(platform, found)
        output.finish(result, render_pipelines.diagnosis, ok=result.ok)
        if not result.ok:
            raise typer.Exit(int(ExitCode.ENVIRONMENT))


@contextmanager
def _asked(
    verb: str, pipeline: Path | None, platform: Path | None, as_json: bool, debug: bool
) -> Iterator[tuple[Output, PipelineConfig | None, PlatformConfig]]:
    """A pipeline, or the platform alone."""
    if pipeline is not None:
        with invocation(verb, pipeline, platform, as_json, debug) as call:
            yield call.output, call.pipeline, call.platform
        return
    with speaking(verb, as_json, debug) as output:
        from tidegate.config.loader import load_platform

        yield output, None, load_platform(platform)
