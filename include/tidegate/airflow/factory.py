"""From pipeline files to Dags.

Parsing reads YAML and nothing else: no catalog, no database, no Spark, no secrets.

A file that cannot be loaded gives no Dags; the others give theirs. The broken one is shown as an
Airflow import error of ``dags/tidegate_pipeline_errors.py``, with every problem in words. (An
import error of the file that makes the Dags would mark *all* of them stale: every pipeline stops.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from airflow.sdk import DAG, get_parsing_context
from airflow.sdk.exceptions import AirflowException

from tidegate.airflow.dags.changes import changes
from tidegate.airflow.dags.offsets import offsets
from tidegate.airflow.dags.redrive import redrive
from tidegate.airflow.dags.reload import reload, reload_tables
from tidegate.airflow.dags.rollback import rollback
from tidegate.airflow.dags.schema import schema
from tidegate.airflow.dags.setting import Setting
from tidegate.airflow.dags.sweep import sweep
from tidegate.airflow.dags.upkeep import maintenance
from tidegate.airflow.dags.verify import verify
from tidegate.config.folder import CONFIG_DIR, pipeline_files, pipelines_dir
from tidegate.config.loader import PLATFORM_FILE_VARIABLE, load_pipeline, load_platform
from tidegate.errors import ConfigError, TidegateError

__all__ = ["build_dags", "pipelines_dir", "platform_path", "raise_problems"]


def platform_path(project: Path) -> Path | None:
    """``TIDEGATE_PLATFORM_FILE``, or the project's ``include/config/platform.yaml`` if there."""
    named = os.environ.get(PLATFORM_FILE_VARIABLE)
    if named:
        return Path(named)
    default = project / CONFIG_DIR / "platform.yaml"
    return default if default.is_file() else None


def build_dags(directory: Path | str, platform_file: Path | str | None = None) -> dict[str, DAG]:
    """The Dags of every pipeline file that loads, by Dag id.

    Where Airflow starts a task it parses the file once more for that one Dag: no other is made.
    """
    dags: dict[str, DAG] = {}
    for outcome in _outcomes(directory, platform_file, get_parsing_context().dag_id):
        if isinstance(outcome, dict):
            dags |= outcome
    return dags


def raise_problems(directory: Path | str, platform_file: Path | str | None = None) -> None:
    """Raise one error that names everything wrong with any file; quiet if nothing is."""
    errors = [
        outcome
        for outcome in _outcomes(directory, platform_file)
        if isinstance(outcome, TidegateError)
    ]
    if errors:
        raise ConfigError(
            "config.pipelines",
            "\n\n".join(error.message for error in errors),
            hint="correct the file; `tidegate validate <file>` says the same without Airflow",
        ) from None


def _outcomes(
    directory: Path | str, platform_file: Path | str | None, only: str | None = None
) -> Iterator[dict[str, DAG] | TidegateError]:
    """Dags or an error, file by file; of the Dag ``only`` where one is named."""
    platform_name = str(Path(platform_file).absolute()) if platform_file else None
    try:
        platform = load_platform(platform_name, resolve_secrets=False)
    except TidegateError as error:
        yield error
        return
    owners: dict[str, Path] = {}
    for file in pipeline_files(Path(directory).absolute()):
        try:
            pipeline = load_pipeline(file, resolve_secrets=False)
            _claim(pipeline.pipeline_id, file, owners)
            yield _dags(Setting(pipeline, platform, str(file), platform_name), only)
        except TidegateError as error:
            yield error
        except (AirflowException, ValueError) as error:
            # What only Airflow can judge: a cron expression, a tag, an owner.
            yield ConfigError("config.dag", f"{file}: {error}", hint="correct the file")


def _claim(pipeline_id: str, file: Path, owners: dict[str, Path]) -> None:
    first = owners.setdefault(pipeline_id, file)
    if first != file:
        raise ConfigError(
            "config.pipeline_twice",
            f"{file}: pipeline_id {pipeline_id} is also used by {first}",
            hint="give each pipeline an id of its own",
        )


_KINDS: Final = {
    "changes": changes,
    "sweep": sweep,
    "maintenance": maintenance,
    "verify": verify,
    "schema": schema,
    "redrive": redrive,
    "rollback": rollback,
    "offsets": offsets,
}


def _dags(setting: Setting, only: str | None) -> dict[str, DAG]:
    kinds = dict(_KINDS)
    if reload_tables(setting.pipeline):
        kinds["reload"] = reload
    ids = {setting.dag_id(kind): build for kind, build in kinds.items()}
    return {dag_id: build(setting) for dag_id, build in ids.items() if only in (None, dag_id)}
