"""The page's files: served with the right type and the strict policy, and nothing else is."""

from __future__ import annotations

import re

import pytest

from tests.support.api import Served
from tidegate.api.routes.page import STATIC

FILES = sorted(str(file.relative_to(STATIC)) for file in STATIC.rglob("*") if file.is_file())
OWN = [name for name in FILES if not name.startswith("vendor/")]
_ELSEWHERE = re.compile(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}")
_IMPORT = re.compile(r'from "(\.[^"]+)"')


def test_the_page_has_a_policy_without_exceptions(api: Served) -> None:
    answer = api.call("GET", "/")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<style|style=|<script(?![^>]* src=)|\son\w+=", answer.text)


def test_every_file_is_served_as_what_it_is(api: Served) -> None:
    types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for name in FILES:
        answer = api.call("GET", f"/static/{name}")
        assert answer.status_code == 200, name
        wanted = types.get(name.rpartition(".")[2])
        assert wanted is None or answer.headers["content-type"].startswith(wanted), name


@pytest.mark.parametrize(
    "path",
    [
        *("../app.py", "%2e%2e/app.py", "..%2fapp.py", "app", "", "no.js", "%2fetc%2fpasswd"),
        *("%00", "app/main.js%00", "%00.js", "a" * 300 + ".js", "%ff.js", "%5c..%5capp.py"),
    ],
)
def test_nothing_else_is(api: Served, path: str) -> None:
    assert api.call("GET", f"/static/{path}").status_code in {401, 404}


@pytest.mark.parametrize("name", OWN)
def test_nothing_is_fetched_from_elsewhere_and_imports_exist(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not _ELSEWHERE.search(text)
    for target in _IMPORT.findall(text):
        assert ((STATIC / name).parent / target).is_file(), target
