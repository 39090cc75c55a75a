"""Pictures of the page for the README and the guide: ``python -m tests.page.screenshots``."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, expect, sync_playwright

from tests.page.conftest import TOKEN, serving
from tests.page.large_lake import large
from tests.page.prepared_lake import CUSTOMERS, prepared
from tests.support.browser import CHROMIUM, FLAGS

IMAGES = Path(__file__).parents[2] / "docs" / "images"
WIDE, PHONE = 1280, 390


@dataclass(frozen=True)
class Shot:
    """One picture: of which lake, how large, and of which place behind ``#/``."""

    name: str
    many: bool
    size: tuple[int, int]
    theme: Literal["light", "dark"]
    place: str = ""


SHOTS = (
    Shot("page-overview", True, (WIDE, 830), "light"),
    Shot("page-pipeline", True, (WIDE, 1020), "light", "shop?open=sales"),
    Shot("page-table", False, (WIDE, 780), "dark", f"shop/tables/{CUSTOMERS}"),
    Shot("page-phone", True, (PHONE, 844), "light"),
)


def main() -> None:
    program = next(filter(None, map(shutil.which, CHROMIUM)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for many in (True, False):
            lake = (large if many else prepared)(Path(folder) / f"many-{many}")
            with serving(lake.folder) as served:
                for shot in (one for one in SHOTS if one.many is many):
                    context = chromium.new_context(
                        viewport={"width": shot.size[0], "height": shot.size[1]},
                        color_scheme=shot.theme,
                        reduced_motion="reduce",
                    )
                    context.add_init_script(f"sessionStorage.setItem('tidegate.token', '{TOKEN}')")
                    address = f"{served.url}#/{shot.place}"
                    take(context.new_page(), address, IMAGES / f"{shot.name}.png")
                    context.close()
        chromium.close()


def take(page: Page, address: str, file: Path) -> None:
    page.goto(address, wait_until="networkidle")
    page.get_by_text("Live", exact=True).wait_for()
    page.locator(".bars-rows, canvas").first.wait_for()
    expect(page.get_by_text("Loading …")).to_have_count(0)
    page.screenshot(path=file)


if __name__ == "__main__":
    main()
