"""Addresses are shown without what they are opened with; what gives nothing away stays as it is."""

from __future__ import annotations

import pytest

from tidegate.errors import ConfigError
from tidegate.observability import log
from tidegate.redaction import address, origin, redacted

HARMLESS = (
    "write http://host:port or https://host:port, with its path",
    "s3://acme-lake/warehouse, file:///srv/lake and thrift://host:9083",
    "postgresql://host/db jdbc:sqlite:///srv/catalog.db",
    "mail ann@example.org; GRANT x TO y@z",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_gives_nothing_away_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:hunter2@host:8081/v1", "https://…@host:8081/v1"),
        ("postgresql://ann:p/hunter2@host/db", "postgresql://…@host/db"),
        ("postgresql://ann:p#hunter2@host/db", "postgresql://…"),
        ("postgresql://ann:p?hunter2@host/db", "postgresql://…"),
        ("postgresql://ann:p@hunter2@host/db", "postgresql://…@host/db"),
        (
            "jdbc:postgresql://host/db?user=ann&password=hunter2&ssl",
            "jdbc:postgresql://host/db?user=…&password=…&…",
        ),
        ("jdbc:sqlserver://host;user=ann;password=hunter2", "jdbc:sqlserver://host;…"),
        ("https://host/hook?hunter2#hunter2", "https://host/hook?…#…"),
        ("https://host/hook#access_token=hunter2", "https://host/hook#…"),
        ("s3://key:hunter2@bucket/lake", "s3://…@bucket/lake"),
        ("k8s://https://ann:hunter2@host:6443", "k8s://…@host:6443"),
    ],
)
def test_users_passwords_and_queries_are_hidden(url: str, shown: str) -> None:
    assert address(url) == shown
    assert redacted(f"it is ({url}), now") == f"it is ({shown}), now" or "hunter2" not in redacted(
        f"it is ({url}), now"
    )
    assert redacted(redacted(url)) == redacted(url)


def test_a_value_that_is_an_address_hides_more_than_a_text_may() -> None:
    assert address("ann:hunter2@host:9092") == "…@host:9092"
    assert address("postgresql://ann:hunter 2") == "postgresql://…"
    assert origin("https://hooks.example.org/services/T0/hunter2") == "https://hooks.example.org/…"
    assert origin("http://127.0.0.1:9000/") == "http://127.0.0.1:9000/"


def test_a_text_is_looked_at_once() -> None:
    for word in ("a" * 300_000, "a:" * 150_000, "@" * 300_000, "x://" * 75_000):
        assert redacted(f"{word} https://ann:hunter2@host").endswith(" https://…@host")
        assert redacted(f"{word} 1https://ann:hun'ter2@host").endswith(" 1https://…@host")


def test_errors_and_logging_hide_them_by_themselves(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "test_redaction")
    url = "https://ann:hunter2@host/v1?token=hunter2"
    error = ConfigError("test.error", f"{url} does not answer", hint=f"look at {url}")
    log.event(log.get("test_redaction"), f"asked {url}", reason=url, facts={"tried": [url, 1]})
    assert log.fields_of(caplog.records[-1])["facts"]["tried"][1] == 1
    record = log.get("test_redaction").makeRecord(
        "test_redaction", 20, "", 0, f"asked {url}", (), (ValueError, ValueError(url), None)
    )
    lines = [log.JsonFormatter().format(record), log.LineFormatter().format(record)]
    fields = [f"{one.getMessage()} {log.fields_of(one)}" for one in caplog.records]
    for said in (str(error), str(error.to_dict()), repr(error), *lines, *fields):
        assert "hunter2" not in said
        assert "host/v1" in said
