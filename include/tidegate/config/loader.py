"""Read ``pipeline.yaml`` and ``platform.yaml``.

Which platform file: the path given, else ``TIDEGATE_PLATFORM_FILE``, else ``./platform.yaml``, else
``./include/config/platform.yaml``, else the defaults. Relative local paths in it (``lake.home``,
``lake.warehouse``, a SQLite ``lake.catalog.uri``) are relative to the file that says them; without
a file, to the working directory; so is ``schema_registry.ca_file``. ``source.sslrootcert`` is
relative to the pipeline file.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from tidegate.config.base import Section
from tidegate.config.document import Document, read_document
from tidegate.config.explain import Explainer
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import CatalogType, PlatformConfig
from tidegate.config.problems import ConfigProblems, KeyPath, Problem
from tidegate.config.substitution import Substituted, substitute

PLATFORM_FILE_VARIABLE: Final = "TIDEGATE_PLATFORM_FILE"
PLATFORM_FILES: Final = (Path("platform.yaml"), Path("include/config/platform.yaml"))
"""Looked for in the working directory, in this order, when nothing names a platform file."""

_STAND_IN: Final = "stand_in"
_MOST_ROUNDS: Final = 8
"""More than the models are deep, so that checks behind checks are reached and the loop ends."""

Model = TypeVar("Model", bound=Section)


def load_pipeline(
    path: Path | str, *, resolve_secrets: bool = True, environ: Mapping[str, str] | None = None
) -> PipelineConfig:
    """Load one pipeline file; :class:`ConfigProblems` names everything that is wrong with it.

    ``resolve_secrets=False`` leaves passwords and unset variables as ``${VAR}`` (Dag parsing).
    ``environ``: in place of the process's own, for a file that must not read it.
    """
    path = Path(path)
    pipeline = _load(path, PipelineConfig, PlatformConfig, resolve_secrets, environ)
    certificate = pipeline.source.sslrootcert
    if certificate is None or Path(certificate).is_absolute():
        return pipeline
    absolute = str(path.absolute().parent / certificate)
    source = pipeline.source.model_copy(update={"sslrootcert": absolute})
    return pipeline.model_copy(update={"source": source})


def load_platform(
    path: Path | str | None = None, *, resolve_secrets: bool = True
) -> PlatformConfig:
    """Load the platform file (see the module's text for which), local paths made absolute."""
    file = platform_file(path)
    if file is None:
        return _anchored(PlatformConfig(), Path.cwd())
    platform = _load(file, PlatformConfig, PipelineConfig, resolve_secrets)
    return _anchored(platform, file.absolute().parent)


def platform_file(path: Path | str | None = None) -> Path | None:
    """The platform file that counts, or None where the defaults do."""
    named = path if path is not None else os.environ.get(PLATFORM_FILE_VARIABLE) or None
    if named is not None:
        return Path(named)
    return next((file for file in PLATFORM_FILES if file.is_file()), None)


def _load(
    path: Path,
    model: type[Model],
    other: type[Section],
    resolve: bool,
    environ: Mapping[str, str] | None = None,
) -> Model:
    document = read_document(path)
    known = os.environ if environ is None else environ
    after = substitute(document.data, known, resolve_secrets=resolve)
    problems = document.problems + _variable_problems(document, after)
    explainer = Explainer(document, model, other, after.written)
    document.data = after.data
    if problems:
        problems += _validate(model, document, after, explainer)[1]
        raise ConfigProblems(sorted(problems, key=lambda problem: problem.line or 0))
    loaded, problems = _validate(model, document, after, explainer)
    if loaded is None:
        raise ConfigProblems(sorted(problems, key=lambda problem: problem.line or 0))
    return loaded


def _variable_problems(document: Document, after: Substituted) -> list[Problem]:
    problems = [
        document.problem(
            path,
            f"the environment variable {name} is not set",
            found=f"${{{name}}}",
            allowed=f"set {name}, or give a default: ${{{name}:-…}}",
        )
        for path, names in after.missing.items()
        for name in names
    ]
    return problems + [
        document.problem(path, "not a variable", allowed="${VAR}, ${VAR:-default}, $$ for a $")
        for path in after.broken
    ]


def _validate(
    model: type[Model], document: Document, after: Substituted, explainer: Explainer
) -> tuple[Model | None, list[Problem]]:
    """Validate, take out what is wrong, and validate the rest: later checks speak up too."""
    data = copy.deepcopy(document.data)
    settled = after.unresolved | set(after.missing) | set(after.broken)  # not to be reported again
    problems: dict[Problem, None] = {}
    for _ in range(_MOST_ROUNDS):
        try:
            loaded = model.model_validate(data)
        except ValidationError as error:
            wrong = explainer.problems(error)
        else:
            return (None if problems else loaded), list(problems)
        problems |= {problem: None for path, problem in wrong if path not in settled}
        settled |= {path for path, _ in wrong}
        changed = [path for path, _ in wrong if _set_right(data, path)]
        if not changed:
            break
    return None, list(problems)


def _set_right(data: Any, path: KeyPath) -> bool:
    """Take a wrong key out, or put a missing one in, so that the rest can be looked at.

    List items stay: the paths of those after them would shift.
    """
    for part in path[:-1]:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return False
    if not path or not isinstance(data, dict) or data.get(str(path[-1])) == _STAND_IN:
        return False
    if path[-1] in data:
        del data[path[-1]]
    else:
        data[str(path[-1])] = _STAND_IN
    return True


def _anchored(platform: PlatformConfig, base: Path) -> PlatformConfig:
    lake, catalog = platform.lake, platform.lake.catalog
    uri = catalog.uri
    if uri is not None and catalog.type is CatalogType.SQLITE and "://" not in uri:
        catalog = catalog.model_copy(update={"uri": _absolute(uri, base)})
    warehouse = lake.warehouse
    if warehouse is not None and "://" not in warehouse and not warehouse.startswith("file:"):
        warehouse = _absolute(warehouse, base)
    update = {"home": _absolute(lake.home, base), "warehouse": warehouse, "catalog": catalog}
    sections: dict[str, Section] = {"lake": lake.model_copy(update=update)}
    registry = platform.schema_registry
    if registry.ca_file is not None:
        file = {"ca_file": _absolute(registry.ca_file, base)}
        sections["schema_registry"] = registry.model_copy(update=file)
    return platform.model_copy(update=sections)


def _absolute(path: str, base: Path) -> str:
    if "://" in path:
        return path  # no file: as part of one it would no longer be known for an address
    return str(Path(os.path.normpath(base / Path(path).expanduser())))
