"""Cases as people write them (``tests/conformance/README.md`` is the guide), read and checked.

A *value case* is one column and its values; many share a table. An *event case* has tables and
transactions of its own.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tidegate.config.sinks import ColumnOptions, TableOptions
from tidegate.errors import ConfigError

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
Text = str | None | list[Any]
"""A lake value as the source prints it; a list for a list."""

BATCH: Final = "batch"
"""Among transactions: what was committed so far is captured and applied before going on."""
PATHS: Final = ("sweep", "log", "both")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Value(_Strict):
    """One value: what is inserted, and what the lake must hold."""

    sql: str
    value: Text = None
    adjusted: bool = False
    """A policy changed it, which must be counted."""

    @property
    def given(self) -> bool:
        """Whether the case says what the lake holds; otherwise it is the source's own text."""
        return "value" in self.model_fields_set


class _Needs(_Strict):
    name: Name
    suite: str = ""
    """The file it stands in."""
    because: str = ""
    """Where the fact comes from, or why it is worth a case."""
    since: int = 0
    until: int = 99
    extension: str | None = None
    server: Literal["mariadb", "mysql"] | None = None
    """The one of the two that a case of theirs is about; by default both."""
    setup: tuple[str, ...] = ()
    """Statements run once per database before any table: types, domains."""


class ValueCase(_Needs):
    """A column of a type, and values of it."""

    type: str
    lake: str
    values: tuple[Value, ...]
    options: ColumnOptions = ColumnOptions()
    nullable: bool = True
    """False: a domain that refuses NULL; rows without a value of their own take the first."""

    @field_validator("values", mode="before")
    @classmethod
    def _short(cls, values: Any) -> Any:
        return [{"sql": one} if isinstance(one, str) else one for one in values]


class EventCase(_Needs):
    """Tables of their own and what happens to them."""

    ddl: tuple[str, ...]
    tables: tuple[str, ...] = ("t",)
    names: dict[str, str] = {}
    """SQL names of tables that must not be called like the case."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    rows: dict[str, list[list[Text]]] = {}
    """Final rows per table, key order; a table not named must equal the source."""
    lake: dict[str, dict[str, str]] = {}
    """Lake types per table and column."""
    options: dict[str, TableOptions] = {}
    paths: tuple[Literal["sweep", "log", "both"], ...] = PATHS
    modes: tuple[Literal["upsert", "append", "history"], ...] = ("upsert", "append", "history")
    """Write modes under which the case means something; by default all."""
    fails: dict[Literal["sweep", "log"], str] = {}
    """Error code with which the table must be refused, per path; nothing wrong is written."""
    letters: dict[str, int] = {}
    """Dead letters per table, whether changes come by the log or a sweep; by default none."""
    refused: str | None = None
    """Code of the problem that ``validate`` must report; the case is not run further."""

    @model_validator(mode="after")
    def _known_tables(self) -> EventCase:
        for what in (self.rows, self.lake, self.options, self.letters):
            unknown = set(what) - set(self.tables)
            if unknown:
                raise ValueError(f"{self.name}: no such table: {', '.join(sorted(unknown))}")
        return self


Case = ValueCase | EventCase


class _File(_Strict):
    about: str
    cases: tuple[dict[str, Any], ...]


def load_cases(folder: Path) -> list[Case]:
    """Every case below ``folder``, in the order of files and blocks."""
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise ConfigError(
            "conformance.no_cases",
            f"there are no cases in {folder}",
            hint="name the folder of the case files with --cases",
        )
    cases = [case for file in files for case in _load(file)]
    twice = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if twice:
        raise _wrong(folder, f"names used twice: {', '.join(sorted(twice))}")
    return cases


def _load(file: Path) -> list[Case]:
    try:
        found = _File.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
        return [
            (ValueCase if "values" in block else EventCase).model_validate(
                {**block, "suite": file.stem}
            )
            for block in found.cases
        ]
    except (ValidationError, yaml.YAMLError) as error:
        raise _wrong(file, str(error)) from error


def _wrong(where: Path, why: str) -> ConfigError:
    return ConfigError(
        "conformance.case",
        f"{where.name}: {why}",
        hint="see tests/conformance/README.md for what a case looks like",
    )
