"""A running pipeline under the page's hands: real PostgreSQL, real Spark, the server's own runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import Open, Served, serving
from tests.page.prepared_lake import CUSTOMERS, PAYMENTS, PreparedLake, configured, prepared
from tests.support.cli import Cli
from tests.support.postgres import SourceDatabase
from tidegate.lake import positions
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER

pytestmark = [pytest.mark.spark, pytest.mark.postgres]
RUN_MS = 240_000
PLACE = f"shop/tables/{CUSTOMERS}"


@pytest.fixture
def running(tmp_path: Path, source_db: SourceDatabase) -> Iterator[tuple[PreparedLake, Served]]:
    """A deployed pipeline whose table was never swept."""
    source_db.sql(
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text)",
        "INSERT INTO customers SELECT n, 'c' || n FROM generate_series(1, 100) n",
    )
    lake = configured(
        tmp_path / "lake",
        port=source_db.server.port,
        database=source_db.name,
        username=SUPERUSER,
        password=PASSWORD,
        tables=[CUSTOMERS],
    )
    cli = Cli(lake.folder, {"TIDEGATE_PLATFORM_FILE": str(lake.folder / "platform.yaml")})
    (lake.folder / "pipeline.yaml").symlink_to(lake.folder / "pipelines" / "shop.yaml")
    assert cli.run("deploy").returncode == 0
    with serving(lake.folder) as served:
        yield lake, served


def run(page: Page, button: Locator, verb: str) -> None:
    """Confirm an action and wait for its end."""
    button.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=verb, exact=True).click()
    ended = dialog.get_by_text("Done", exact=True).or_(dialog.get_by_text("Failed", exact=True))
    expect(ended).to_be_visible(timeout=RUN_MS)
    assert "Done" in ended.inner_text(), dialog.inner_text()
    dialog.get_by_role("button", name="Close").click()


def test_a_table_is_swept_verified_and_rolled_back(
    running: tuple[PreparedLake, Served], source_db: SourceDatabase, opened: Open
) -> None:
    lake, served = running
    visitor = opened(served)
    page = visitor.visit(PLACE)
    expect(page.get_by_text("This table needs a first sweep")).to_be_visible()
    run(page, page.get_by_role("button", name="Sweep …"), "Sweep")
    rows = page.locator(".facts div").filter(has=page.get_by_text("Rows", exact=True))
    expect(rows).to_contain_text("100")  # told by the socket, not by a reload

    source_db.sql("INSERT INTO customers VALUES (101, 'new')", "DELETE FROM customers WHERE id = 1")
    run(page, page.get_by_role("button", name="Verify …"), "Verify")
    expect(page.locator(".facts")).to_contain_text("100 % of keys")

    visitor.visit(f"{PLACE}/snapshots")
    run(page, page.get_by_role("button", name="Roll back").last, "Roll back")
    expect(page.locator(".facts")).to_contain_text("nothing proven")
    table = lake.catalog.load_table(("shop", "customers"))
    assert table.scan().to_arrow()["id"].to_pylist().count(1) == 1, "the deleted row is back"
    assert positions.applied(table) is not None


@pytest.mark.long
def test_a_table_is_compacted_and_letters_are_redriven(tmp_path: Path, opened: Open) -> None:
    lake = prepared(tmp_path / "lake")
    with serving(lake.folder) as served:
        visitor = opened(served)
        page = visitor.visit(f"{PLACE}/files")
        run(page, page.get_by_role("button", name="Compact now …"), "Compact")
        visitor.visit(PLACE)
        expect(page.locator(".timeline")).to_contain_text("compact")
        visitor.visit(f"shop/tables/{PAYMENTS}/letters")
        run(page, page.get_by_role("button", name="Redrive all …"), "Redrive")
        # The later change of the row makes the failed one moot.
        expect(page.get_by_text("No dead letters")).to_be_visible()
