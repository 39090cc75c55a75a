"""Airflow's pages for the README. ``python -m tests.dags.screenshots`` takes the list of Dags; with
the word ``changes``, beside a running ``make demo``, the runs of the changes Dag.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

from demo.airflow_config import USER
from tests.dags.conftest import PROJECT
from tests.support.browser import CHROMIUM, FLAGS

PIPELINE = """\
pipeline_id: shop
tags: [demo]
source: {password: unused, database: shop, tables: [public.customers, public.orders]}
"""


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "shop.yaml").write_text(PIPELINE)
    (folder / "platform.yaml").write_text("lake: {home: lake}\n")
    os.environ |= {
        "TIDEGATE_PIPELINES_DIR": str(folder / "pipelines"),
        "TIDEGATE_PLATFORM_FILE": str(folder / "platform.yaml"),
    }
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True)
    from tests.dags.test_plugin import serialize, served

    serialize()
    for server in served():
        take(server.url, server.tokens["op"], "/dags", "shop__offsets", "airflow-dags.png")
    shutil.rmtree(folder)


def changes() -> None:
    """Of the demo's own Airflow."""
    from demo.stack import Stack

    stack = Stack(print)
    login = {"username": USER, "password": stack.keys.password}
    token = httpx.post(f"{stack.url}/auth/token", json=login).raise_for_status().json()
    take(
        stack.url, token["access_token"], "/dags/shop__changes", "apply_open", "airflow-changes.png"
    )


def take(url: str, token: str, path: str, shown: str, file: str) -> None:
    program = next(filter(None, map(shutil.which, CHROMIUM)))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        context = chromium.new_context(viewport={"width": 1280, "height": 860})
        context.add_cookies([{"name": "_token", "value": token, "url": url}])
        page = context.new_page()
        page.goto(f"{url}{path}")
        page.get_by_role("link", name=shown).first.wait_for(timeout=120_000)
        page.wait_for_load_state("networkidle")
        page.wait_for_function("() => [...document.images].every((image) => image.complete)")
        page.screenshot(path=PROJECT / "docs" / "images" / file)
        chromium.close()


if __name__ == "__main__":
    changes() if sys.argv[1:] == ["changes"] else main()
