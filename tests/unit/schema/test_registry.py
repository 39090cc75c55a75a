"""The registry's client on bad days: bounded, classed, and discreet about what it was told."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.support.odd_registry import OddRegistry, odd_registry
from tidegate.config.registry import SchemaRegistryConfig
from tidegate.errors import ConfigError, DataError, RetriableError, TidegateError
from tidegate.schema.registry import MAX_ANSWER_BYTES, Opinion, Registered, SchemaRegistry
from tidegate.testing.postgres_server import free_port

CANARY = "canary-41c7"
PATIENT = SchemaRegistryConfig(enabled=True, timeout_seconds=30)


@pytest.fixture
def odd() -> Iterator[OddRegistry]:
    with odd_registry() as server:
        yield server


def failure(registry: SchemaRegistry) -> TidegateError:
    with pytest.raises(TidegateError) as caught:
        registry.lookup("cdc.public.orders-value", '"string"')
    assert CANARY not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (500, {"error_code": 50001, "message": CANARY}, RetriableError, "registry.failing"),
        (503, CANARY, RetriableError, "registry.failing"),
        (401, {}, ConfigError, "registry.unauthorised"),
        (403, {}, ConfigError, "registry.unauthorised"),
        (404, f"<html>{CANARY}", ConfigError, "registry.nonsense"),
        (302, {}, ConfigError, "registry.nonsense"),
        (200, [CANARY], ConfigError, "registry.nonsense"),
        (200, {"id": CANARY, "version": 1}, ConfigError, "registry.nonsense"),
        (200, {"id": True, "version": 1}, ConfigError, "registry.nonsense"),
        (409, {"message": 7}, DataError, "registry.refused"),
    ],
)
def test_answers_are_classed_by_what_helps(
    odd: OddRegistry, status: int, body: Any, kind: type[TidegateError], code: str
) -> None:
    odd.says(status, body)
    error = failure(SchemaRegistry(PATIENT, odd.url))
    assert (type(error), error.code) == (kind, code)


def test_garbage_and_floods_are_no_registry(odd: OddRegistry) -> None:
    odd.body = b"\xff\x00" + CANARY.encode()
    assert failure(SchemaRegistry(PATIENT, odd.url)).code == "registry.nonsense"
    odd.body = b'{"id": 1, "version": 1, "pad": "' + b"x" * MAX_ANSWER_BYTES + b'"}'
    assert failure(SchemaRegistry(PATIENT, odd.url)).code == "registry.nonsense"


@pytest.mark.parametrize("how", ["silent", "drip"])
def test_silence_and_dripping_end_at_the_time_limit(odd: OddRegistry, how: str) -> None:
    odd.silent, odd.drip = how == "silent", 0.02 if how == "drip" else None
    hasty = SchemaRegistryConfig(enabled=True, timeout_seconds=0.5)
    began = time.monotonic()
    assert failure(SchemaRegistry(hasty, odd.url)).code == "registry.timeout"
    assert time.monotonic() - began < 10


def test_nobody_there() -> None:
    registry = SchemaRegistry(PATIENT, f"http://127.0.0.1:{free_port()}")
    assert failure(registry).code == "registry.unreachable"


def test_a_subject_that_does_not_exist_is_an_answer(odd: OddRegistry) -> None:
    odd.says(404, {"error_code": 40401, "message": "Subject not found."})
    registry = SchemaRegistry(PATIENT, odd.url)
    assert registry.lookup("a/b c-value", '"string"') is None
    assert registry.opinion("s", '"string"') is None
    assert odd.asked[0] == "/subjects/a%2Fb%20c-value"


def test_good_answers(odd: OddRegistry) -> None:
    registry = SchemaRegistry(PATIENT, odd.url)
    odd.says(200, {"subject": "s", "id": 7, "version": 2, "schema": "…"})
    assert registry.lookup("s", '"string"') == Registered(7, 2)
    assert registry.register("s", '"string"') == Registered(7, 2)
    odd.says(200, {"is_compatible": False, "messages": ["a\n b", 3, "x" * 999]})
    assert registry.opinion("s", '"string"') == Opinion(False, ("a b", "x" * 300))
    odd.says(200, {"is_compatible": True, "messages": []})
    assert registry.opinion("s", '"string"') == Opinion(True)


def test_signing_in(odd: OddRegistry) -> None:
    odd.says(200, {"id": 1, "version": 1})
    secret = SecretStr(CANARY)
    basic = SchemaRegistryConfig(enabled=True, username="ann", password=secret)
    SchemaRegistry(basic, odd.url).lookup("s", '"string"')
    bearer = SchemaRegistryConfig(enabled=True, token=secret)
    SchemaRegistry(bearer, odd.url).lookup("s", '"string"')
    pair = base64.b64encode(f"ann:{CANARY}".encode()).decode()
    sent = [headers["Authorization"] for headers in odd.headers]
    assert sent == [f"Basic {pair}", f"Bearer {CANARY}"]
    assert CANARY not in repr((basic, bearer))


def test_a_ca_file_that_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    for file in (broken, tmp_path / "missing.pem"):
        with pytest.raises(ConfigError) as caught:
            SchemaRegistry(SchemaRegistryConfig(ca_file=str(file)), "https://127.0.0.1")
        assert caught.value.code == "registry.ca_file"
