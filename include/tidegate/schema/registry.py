"""A Confluent-compatible schema registry, asked over HTTP.

httpx is installed with Airflow already, and under asyncio a request has one true deadline; the
vendor's client brings a C library, retries of its own and time limits per read only.

Order: as called. Duplicates: registering what is registered gives the same id again. Durability:
the registry's. Nothing of an answer that is not understood goes into an error (I9).
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx

from tidegate.config.registry import SchemaRegistryConfig
from tidegate.errors import ConfigError, DataError, RetriableError, TidegateError

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
MAX_ANSWER_BYTES: Final = 1024 * 1024
"""A schema of a thousand columns is a tenth of this."""
_LONGEST: Final = 300
_MOST_REASONS: Final = 5
_UNKNOWN: Final = frozenset({40401, 40402, 40403})  # subject, version, schema not found
_INCOMPATIBLE: Final = 409
_INVALID: Final = 422


@dataclass(frozen=True, slots=True)
class Registered:
    """Where the registry keeps a schema."""

    id: int
    version: int


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whether a schema goes with the newest one of its subject, by the registry's own rules."""

    compatible: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: Mapping[str, Any]


class SchemaRegistry:
    """One registry. No connection is kept: a run asks a handful of questions."""

    def __init__(self, config: SchemaRegistryConfig, url: str) -> None:
        self.url = url
        self._timeout = config.timeout_seconds
        self._headers = {"Accept": MEDIA_TYPE, "Content-Type": MEDIA_TYPE}
        self._auth: httpx.Auth | None = None
        if config.token is not None:
            self._headers["Authorization"] = f"Bearer {config.token.get_secret_value()}"
        elif config.username is not None and config.password is not None:
            self._auth = httpx.BasicAuth(config.username, config.password.get_secret_value())
        self._tls = _tls(config.ca_file)

    def lookup(self, subject: str, schema: str) -> Registered | None:
        """Where ``schema`` is kept under ``subject``; None: it is not."""
        answer = self._ask(f"subjects/{quote(subject, safe='')}", schema)
        if answer is None:
            return None
        return Registered(_number(self.url, answer, "id"), _number(self.url, answer, "version"))

    def opinion(self, subject: str, schema: str) -> Opinion | None:
        """On ``schema`` after the newest one of ``subject``; None: there is none."""
        path = f"compatibility/subjects/{quote(subject, safe='')}/versions/latest?verbose=true"
        answer = self._ask(path, schema)
        if answer is None:
            return None
        verdict = answer.get("is_compatible")
        if not isinstance(verdict, bool):
            raise _nonsense(self.url)
        return Opinion(verdict, () if verdict else _reasons(answer.get("messages")))

    def register(self, subject: str, schema: str) -> Registered:
        """Keep ``schema`` under ``subject``. ``registry.refused``: its rules forbid it."""
        answer = self._ask(f"subjects/{quote(subject, safe='')}/versions", schema)
        found = None if answer is None else self.lookup(subject, schema)
        if found is None:
            raise _nonsense(self.url)
        return found

    def _ask(self, path: str, schema: str) -> Mapping[str, Any] | None:
        """The answer to a POST of ``schema``; None: what was asked about does not exist."""
        try:
            answer = asyncio.run(self._send(f"{self.url}/{path}", json.dumps({"schema": schema})))
        except TimeoutError as error:
            raise RetriableError(
                "registry.timeout",
                f"the schema registry at {self.url} did not answer in {self._timeout:g} s",
                hint="nothing waits for it, the next run asks again; look at the registry, or raise"
                " schema_registry.timeout_seconds",
            ) from error
        except (httpx.HTTPError, OSError) as error:
            raise RetriableError(
                "registry.unreachable",
                f"the schema registry at {self.url} cannot be reached: {type(error).__name__}",
                hint="nothing waits for it, the next run asks again; is the address right, does the"
                " registry run, is its certificate signed by schema_registry.ca_file?",
            ) from error
        return _settled(self.url, answer)

    async def _send(self, url: str, body: str) -> _Answer:
        async with asyncio.timeout(self._timeout):  # over all: also of an answer that drips
            async with (
                httpx.AsyncClient(verify=self._tls, timeout=None) as client,
                client.stream(
                    "POST",
                    url,
                    content=body,
                    headers=self._headers,
                    auth=self._auth or httpx.USE_CLIENT_DEFAULT,
                ) as response,
            ):
                taken = bytearray()
                async for part in response.aiter_bytes():
                    taken += part
                    if len(taken) > MAX_ANSWER_BYTES:
                        return _Answer(response.status_code, {})
                return _Answer(response.status_code, _object(bytes(taken)))


def _settled(url: str, answer: _Answer) -> Mapping[str, Any] | None:
    status, body = answer.status, answer.body
    if status == httpx.codes.OK and body:
        return body
    if status == httpx.codes.NOT_FOUND and body.get("error_code") in _UNKNOWN:
        return None
    raise _error(url, status, body)


def _error(url: str, status: int, body: Mapping[str, Any]) -> TidegateError:
    if status in (_INCOMPATIBLE, _INVALID):
        said = "; ".join(_reasons([body.get("message")]))
        return DataError(
            "registry.refused",
            f"the schema registry at {url} refuses the schema ({status}){said and ': '}{said}",
            hint="the pipeline goes on; change the subject's compatibility or leave it: it is tried"
            " again until a later schema of the table is taken",
        )
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return ConfigError(
            "registry.unauthorised",
            f"the schema registry at {url} does not let us in ({status})",
            hint="schema_registry.username and password, or token, in platform.yaml",
        )
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return RetriableError(
            "registry.failing",
            f"the schema registry at {url} fails ({status})",
            hint="nothing waits for it, the next run asks again; look at the registry's own log",
        )
    return _nonsense(url, status)


def _nonsense(url: str, status: int | None = None) -> ConfigError:
    what = "" if status is None else f" ({status})"
    return ConfigError(
        "registry.nonsense",
        f"what answers at {url} is no schema registry{what}",
        hint="schema_registry.url must end where /subjects begins: …/apis/ccompat/v7 for Apicurio",
    )


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(url: str, body: Mapping[str, Any], name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _nonsense(url)
    return value


def _reasons(messages: Any) -> tuple[str, ...]:
    """A registry's words about a schema, as what a line can hold: no control characters."""
    texts = messages if isinstance(messages, list) else []
    words = (" ".join(text.split()) for text in texts if isinstance(text, str))
    said = ("".join(filter(str.isprintable, text))[:_LONGEST] for text in words)
    return tuple(text for text in said if text)[:_MOST_REASONS]


def _tls(ca_file: str | None) -> ssl.SSLContext:
    """Without a file, what this machine trusts."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            "registry.ca_file",
            f"schema_registry.ca_file {ca_file} cannot be used: {type(error).__name__}",
            hint="a readable file with certificates in PEM",
        ) from error
