"""Pictures of the page for the README and the guide: ``python -m tests.page.screenshots``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.page.conftest import TOKEN, serving
from tests.page.prepared_lake import CUSTOMERS, prepared
from tests.support.browser import CHROMIUM, FLAGS

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDTH = 1280


def main() -> None:
    program = next(filter(None, map(shutil.which, CHROMIUM)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        lake = prepared(Path(folder) / "lake")
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        with serving(lake.folder) as served:
            for name, theme, height, place in (
                ("page-overview", "light", 480, ""),
                ("page-table", "dark", 780, f"shop/tables/{CUSTOMERS}"),
            ):
                context = chromium.new_context(
                    viewport={"width": WIDTH, "height": height},
                    color_scheme=theme,  # type: ignore[arg-type]
                    reduced_motion="reduce",
                )
                context.add_init_script(f"sessionStorage.setItem('tidegate.token', '{TOKEN}')")
                take(context.new_page(), f"{served.url}#/{place}", IMAGES / f"{name}.png")
                context.close()
        chromium.close()


def take(page: Page, address: str, file: Path) -> None:
    page.goto(address, wait_until="networkidle")
    page.get_by_text("Live", exact=True).wait_for()
    page.locator(".spark-line, canvas").first.wait_for()
    page.screenshot(path=file)


if __name__ == "__main__":
    main()
