"""``schema_registry``: a Confluent-compatible registry that is told every schema of a source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from tidegate.config.base import Issue, Section, WrongTogether

SUBJECT: Final = "{prefix}.{schema}.{table}"
"""The platform specification's topic name; ``-key`` and ``-value`` follow it."""
TIMEOUT_SECONDS: Final = 5.0
"""A healthy registry answers in milliseconds."""
MAX_SECONDS: Final = 30.0
"""What is not registered by then waits for the next run; no other task waits for this one."""
_NAMES: Final = frozenset({"prefix", "pipeline", "schema", "table"})
_NAMED: Final = re.compile(r"\{(\w*)\}")
_LITERAL: Final = re.compile(r"[A-Za-z0-9._-]*\Z")


def _address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("write http://host:port or https://host:port, with its path if it has one")
    if parts.username or parts.password:
        raise ValueError("no user or password in the address: addresses are shown and logged")
    if parts.query or parts.fragment:
        raise ValueError("an address without ? and #")
    return value.rstrip("/")


def _subject(value: str) -> str:
    unknown = sorted(set(_NAMED.findall(value)) - _NAMES)
    if unknown or not _LITERAL.match(_NAMED.sub("", value)):
        raise ValueError(
            "letters, digits, . _ - and {prefix}, {pipeline}, {schema}, {table}; nothing else"
        )
    if "{table}" not in value or "{schema}" not in value:
        raise ValueError("{schema} and {table} are needed, or tables would share a subject")
    return value


Address = Annotated[str, AfterValidator(_address)]


class SchemaRegistryConfig(Section):
    """A second opinion on schema changes, and every schema for other readers. Never in the way of
    the pipeline: what fails is noted and tried again."""

    enabled: bool = Field(False, description="Register schemas and ask for compatibility.")
    url: Address | None = Field(
        None,
        description="Its address, with the path of the Confluent API where that has one"
        " (Apicurio: …/apis/ccompat/v7); by default kafka.schema_registry_url.",
    )
    username: str | None = Field(None, description="User, for basic authentication.")
    password: SecretStr | None = Field(
        None, description="Its password; write ${VAR}, never the value."
    )
    token: SecretStr | None = Field(
        None, description="Bearer token, instead of user and password; write ${VAR}."
    )
    ca_file: str | None = Field(
        None, description="CA file (PEM) that https is checked against; relative to this file."
    )
    subject: Annotated[str, AfterValidator(_subject)] = Field(
        SUBJECT,
        description="What -key and -value are appended to: {prefix} is the pipeline's topic_prefix,"
        " {pipeline} its id.",
    )
    timeout_seconds: float = Field(
        TIMEOUT_SECONDS, gt=0, description="Give up a request after this, however slowly it drips."
    )
    max_seconds: float = Field(
        MAX_SECONDS, gt=0, description="End a run after this; the next one goes on."
    )

    @model_validator(mode="after")
    def _one_way_to_sign_in(self) -> SchemaRegistryConfig:
        issues = list(self._issues())
        if issues:
            raise WrongTogether(issues)
        return self

    def _issues(self) -> Iterator[Issue]:
        if self.token is not None and (self.username or self.password):
            yield Issue(("token",), "either a token, or user and password")
        if (self.username is None) is not (self.password is None):
            yield Issue(("username",), "user and password go together")
