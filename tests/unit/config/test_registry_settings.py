"""``schema_registry``: what is refused, and what never shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config.loader import load_platform
from tidegate.config.problems import ConfigProblems

CANARY = "canary-77aa"


def platform(tmp_path: Path, section: str) -> Path:
    file = tmp_path / "platform.yaml"
    file.write_text(f"schema_registry: {{{section}}}\n")
    return file


@pytest.mark.parametrize(
    ("section", "says"),
    [
        (f"url: 'http://ann:{CANARY}@registry'", "no user or password"),
        ("url: registry:8081", "write http://"),
        ("url: 'https://registry?x=1'", r"without \? and #"),
        ("subject: '{schema}'", "{schema} and {table} are needed"),
        ("subject: '{schema}.{tables}'", "nothing else"),
        ("subject: '{schema}/{table}'", "nothing else"),
        (f"token: {CANARY}, username: ann, password: {CANARY}", "either a token"),
        (f"password: {CANARY}", "go together"),
        ("timeout_seconds: 0", "more than 0"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, section: str, says: str) -> None:
    with pytest.raises(ConfigProblems, match=says) as caught:
        load_platform(platform(tmp_path, section))
    assert CANARY not in str(caught.value)


def test_the_address_is_the_registrys_own_or_kafkas(tmp_path: Path) -> None:
    assert load_platform(platform(tmp_path, "enabled: false")).registry_url is None
    kafka = load_platform(platform(tmp_path, "enabled: true"))
    assert kafka.registry_url == "http://localhost:8081"
    own = load_platform(platform(tmp_path, "enabled: true, url: 'https://r/v7/', ca_file: ca.pem"))
    assert own.registry_url == "https://r/v7"
    assert own.schema_registry.ca_file == str(tmp_path / "ca.pem")


def test_secrets_are_not_needed_to_parse(tmp_path: Path) -> None:
    file = platform(tmp_path, "enabled: true, token: '${TIDEGATE_NOT_SET}'")
    assert load_platform(file, resolve_secrets=False).registry_url is not None
    with pytest.raises(ConfigProblems, match="TIDEGATE_NOT_SET is not set"):
        load_platform(file)
