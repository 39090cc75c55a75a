"""The page inside Airflow's own UI: in its navigation, with its login, live, out to a Dag run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from airflow.api_fastapi.core_api.datamodels.plugins import ExternalViewResponse

from tests.dags.test_plugin import Server, server  # noqa: F401  (the fixture)
from tidegate.airflow.navigation import navigation

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.filterwarnings("ignore")


def test_airflow_reads_the_entry_and_its_base_path_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://data.example.com/team/airflow")
    entry = ExternalViewResponse.model_validate(navigation("/tidegate"))
    assert entry.href == "/team/airflow/tidegate/"
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://localhost:8080")
    assert navigation("/tidegate")["href"] == "/tidegate/"


def test_a_user_of_airflow_sweeps_a_table_and_follows_the_run(
    server: Server,  # noqa: F811
    browser: Browser,
) -> None:
    from playwright.sync_api import expect

    context = browser.new_context(viewport={"width": 1360, "height": 900})
    context.set_default_timeout(30_000)
    context.add_cookies([{"name": "_token", "value": server.tokens["user"], "url": server.url}])
    page = context.new_page()
    page.goto(server.url)
    page.get_by_role("link", name="Tidegate").click()
    frame = page.frame_locator("iframe[title=Tidegate]")
    frame.get_by_role("link", name="shop").first.click()
    expect(frame.get_by_text("Live", exact=True)).to_be_visible(timeout=30_000)
    frame.get_by_role("button", name="Sweep …").click()
    frame.get_by_role("button", name="Sweep", exact=True).click()
    frame.get_by_role("link", name="Watch the Dag run").click()
    expect(page).to_have_url(re.compile(r"/dags/shop__sweep/runs/"), timeout=30_000)
    expect(page.locator("iframe[title=Tidegate]")).to_have_count(0)
    context.close()
