"""What a server refuses to do, and how it knows callers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.api.access import Role
from tidegate.api.processes import arguments
from tidegate.api.runner import Verb, Work
from tidegate.api.server import ServerSettings, check, is_loopback
from tidegate.api.server_paths import ServerPaths
from tidegate.api.tokens import Holder, holders, read_file
from tidegate.errors import ConfigError

CERTIFICATE, KEY = Path("cert.pem"), Path("key.pem")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "example.org"])
def test_another_address_than_loopback_needs_tls(host: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(ServerSettings(host=host))
    assert refused.value.code == "serve.exposed"
    check(ServerSettings(host=host, certificate=CERTIFICATE, key=KEY))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert is_loopback(host)
    check(ServerSettings(host=host))


@pytest.mark.parametrize(
    "settings",
    [
        ServerSettings(certificate=CERTIFICATE),
        ServerSettings(key=KEY),
        ServerSettings(client_ca=Path("ca.pem")),
    ],
)
def test_half_of_tls_is_refused(settings: ServerSettings) -> None:
    with pytest.raises(ConfigError, match="need"):
        check(settings)


def test_a_token_is_made_up_once_and_kept_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEGATE_API_TOKEN", raising=False)
    first, made = holders(None, tmp_path)
    again, _ = holders(None, tmp_path)
    assert made is not None and made.stat().st_mode & 0o077 == 0
    assert first == again and first[0].role is Role.ADMIN
    assert made.read_text().split()[2] not in repr(first)


def test_a_token_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# callers\nread ann a-long-enough-token\n")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="others may read"):
        read_file(file)
    file.chmod(0o600)
    assert [(h.name, h.role) for h in read_file(file)] == [("ann", Role.READ)]


@pytest.mark.parametrize("line", ["owner ann a-long-enough-token", "read ann", "read ann short"])
def test_a_token_file_with_a_wrong_line_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(line)
    file.chmod(0o600)
    with pytest.raises(ConfigError) as refused:
        read_file(file)
    assert "a-long-enough-token" not in str(refused.value)


def test_a_token_that_does_not_fit_a_header_is_refused() -> None:
    with pytest.raises(ConfigError):
        Holder.of("ann", Role.READ, "long enough but spaced")


def test_work_becomes_arguments_one_word_each() -> None:
    work = Work(
        Verb.SWEEP,
        "shop",
        {"tables": ["public.a", "public.b"], "where": "-1 < id", "fresh": False, "dry_run": True},
    )
    assert arguments(work) == [
        "--table=public.a",
        "--table=public.b",
        "--where=-1 < id",
        "--dry-run",
    ]
    back = Work(Verb.ROLLBACK, "shop", {"tables": ["public.a"], "snapshot_id": "7", "force": True})
    assert arguments(back) == ["--table=public.a", "--snapshot-id=7", "--force", "--yes"]


def test_files_of_the_server_are_told_by_their_names() -> None:
    paths = ServerPaths(["/srv/tidegate/pipelines", "/srv/tidegate", "include/config"])
    for text, told in {
        "/srv/tidegate/pipelines/shop.yaml:3: wrong": "shop.yaml:3: wrong",
        "see `tidegate validate /srv/tidegate/x/y.yaml`": "see `tidegate validate y.yaml`",
        "no folder /srv/tidegate/pipelines, or": "no folder pipelines, or",
        "/srv/tidegate2/kept and GET /api/v1/cdc": "/srv/tidegate2/kept and GET /api/v1/cdc",
    }.items():
        assert paths.hidden({"a": [text]}) == {"a": [told]}
