"""The registry's client on bad days: bounded, classed, and discreet about what it was told."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from tests.support.odd_registry import OddRegistry, odd_registry
from tidegate.config.registry import SchemaRegistryConfig
from tidegate.errors import ConfigError, DataError, RetriableError, TidegateError
from tidegate.schema.registry import MAX_ANSWER_BYTES, Opinion, Registered, SchemaRegistry
from tidegate.testing.server_user import free_port

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
    odd.says(200, {"is_compatible": False, "messages": ["a\n \x1bb", 3, "x" * 999]})
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


def certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody but itself signs, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    file = folder / "registry.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, form, plain)
    )
    return file


def test_https_is_checked_against_the_ca_file(tmp_path: Path) -> None:
    file = certificate(tmp_path)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(file)
    with odd_registry(server_side) as odd:
        odd.says(200, {"id": 1, "version": 1})
        trusting = PATIENT.model_copy(update={"ca_file": str(file)})
        assert SchemaRegistry(trusting, odd.url).lookup("s", '"string"') == Registered(1, 1)
        assert failure(SchemaRegistry(PATIENT, odd.url)).code == "registry.unreachable"
