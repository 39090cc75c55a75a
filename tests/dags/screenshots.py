"""Airflow's own list of a pipeline's Dags, for the README: ``python -m tests.dags.screenshots``.

(``docs/images/airflow-changes.png`` shows a run, and is taken by hand after ``make up``.)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.dags.conftest import PROJECT
from tests.support.browser import CHROMIUM, FLAGS

PIPELINE = """\
pipeline_id: shop
tags: [demo]
source: {database: shop, tables: [public.customers, public.orders]}
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
    program = next(filter(None, map(shutil.which, CHROMIUM)))
    for server in served():
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
            context = chromium.new_context(viewport={"width": 1280, "height": 860})
            cookie = {"name": "_token", "value": server.tokens["op"], "url": server.url}
            context.add_cookies([cookie])  # type: ignore[list-item]
            page = context.new_page()
            page.goto(f"{server.url}/dags")
            page.get_by_role("link", name="shop__offsets").wait_for(timeout=120_000)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=PROJECT / "docs" / "images" / "airflow-dags.png")
            chromium.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
