"""The pipelines a server knows: the files of one directory, read anew for every request."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidegate.api.posted import allowed_variables
from tidegate.api.problems import Refused
from tidegate.api.server_paths import ServerPaths
from tidegate.config.folder import pipeline_files
from tidegate.config.loader import load_pipeline
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.secrets import apply_secrets, secrets_from_environment
from tidegate.errors import TidegateError

WithSecrets = Callable[[Path], PipelineConfig]


@dataclass(frozen=True, slots=True)
class Subject:
    """The pipeline that a request is about. Its source's password is not resolved."""

    pipeline: PipelineConfig
    platform: PlatformConfig
    file: Path
    open_source: WithSecrets

    def with_secrets(self) -> PipelineConfig:
        """The pipeline as whoever asks its source needs it."""
        return self.open_source(self.file)


@dataclass(frozen=True, slots=True)
class Known:
    """A file of the directory: a pipeline, or what is wrong with it."""

    file: Path
    pipeline: PipelineConfig | None
    error: TidegateError | None

    @property
    def name(self) -> str:
        """Its id; a file too broken to have one goes by its own name."""
        return self.pipeline.pipeline_id if self.pipeline else self.file.stem


def from_environment(file: Path) -> PipelineConfig:
    """Secrets as the command line finds them."""
    pipeline = load_pipeline(file, resolve_secrets=pipeline_has_own(file))
    if pipeline.source.connection_id is None:
        return pipeline
    return apply_secrets(pipeline, secrets_from_environment(pipeline.source.connection_id))


def pipeline_has_own(file: Path) -> bool:
    """Whether the file itself says where its password is."""
    return load_pipeline(file, resolve_secrets=False).source.connection_id is None


class Pipelines:
    """Pipeline files of a directory, on one platform."""

    def __init__(
        self,
        directory: Path,
        platform: PlatformConfig,
        platform_file: Path | None = None,
        with_secrets: WithSecrets = from_environment,
    ) -> None:
        self.directory = directory
        self.platform = platform
        self.platform_file = platform_file
        self.with_secrets = with_secrets
        self.allowed_variables = allowed_variables()
        files = [] if platform_file is None else [platform_file.absolute().parent]
        self.paths = ServerPaths(
            [directory, directory.absolute(), platform.lake.home, tempfile.gettempdir(), *files]
        )

    def all(self) -> list[Known]:
        """Every file, by name."""
        return [_known(file) for file in pipeline_files(self.directory)]

    def get(self, name: str) -> Subject:
        """The pipeline ``name``."""
        for known in self.all():
            if known.pipeline is not None and known.pipeline.pipeline_id == name:
                return Subject(known.pipeline, self.platform, known.file, self.with_secrets)
            if known.error is not None and known.file.stem == name:
                raise known.error
        raise Refused(
            404,
            "api.no_such_pipeline",
            "there is no such pipeline",
            hint="GET /api/v1/cdc/connectors lists those there are",
        )


def _known(file: Path) -> Known:
    try:
        return Known(file, load_pipeline(file, resolve_secrets=False), None)
    except TidegateError as error:
        return Known(file, None, error)
