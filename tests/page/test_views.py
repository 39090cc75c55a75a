"""What the page shows: every view, in both themes, on a phone; accessible, live, and honest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import PHONE, READER, Open, Served, free_port, serving
from tests.page.prepared_lake import CUSTOMERS, ORDERS, VISITS, PreparedLake, configured

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
TABLE = f"shop/tables/{CUSTOMERS}"
VIEWS = {
    "overview": "",
    "pipeline": "shop",
    "states": "shop?state=held",
    "runs": "shop/runs",
    "flow": "shop/flow",
    "timeline": TABLE,
    "snapshots": f"{TABLE}/snapshots",
    "schema held": f"shop/tables/{ORDERS}/schema",
    "files": f"{TABLE}/files",
    "dead letters": "shop/tables/public.payments/letters",
    "row history": f"{TABLE}/row",
}
Shown = tuple[PreparedLake, Served]


def axe(page: Page) -> list[str]:
    """What axe-core finds wrong. Evaluated by the debugger: the page's policy stays as it is."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then((r) => r.violations)")
    return [f"{v['id']}: {node['html'][:200]}" for v in found for node in v["nodes"]]


def settled(page: Page) -> None:
    """Everything the view asks for has come."""
    expect(page.get_by_text("Loading …")).to_have_count(0)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_is_accessible(shown: Shown, opened: Open, theme: str) -> None:
    visitor = opened(shown[1], theme=theme)
    found = {}
    for name, place in VIEWS.items():
        settled(visitor.visit(place))
        found[name] = axe(visitor.page)
    visitor.page.get_by_role("button", name="Sweep …").click()
    found["dialog"] = axe(visitor.page)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_on_a_phone_nothing_is_wider_than_the_screen(shown: Shown, opened: Open) -> None:
    visitor = opened(shown[1], size=PHONE)
    wide = []
    for name, place in VIEWS.items():
        settled(visitor.visit(place))
        if visitor.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(name)
    assert wide == []


def test_the_overview_says_what_is_wrong_and_has_a_line_for_every_pipeline(
    shown: Shown, opened: Open
) -> None:
    page = opened(shown[1]).visit()
    wrong = page.get_by_role("region", name="Needs attention").get_by_role("row")
    held = wrong.filter(has_text="public.orders")
    for text in ("held", "the source's schema changed", "apply run", "Review schema"):
        expect(held).to_contain_text(text)
    expect(wrong.filter(has_text="public.payments")).to_contain_text("2 changes could not be")
    expect(wrong.filter(has_text="unproven")).to_contain_text("3 tables")
    line = page.get_by_role("row", name="Pipeline shop")
    for text in ("1 held, 1 sweeping", "25 %", "1 of 4 tables"):
        expect(line).to_contain_text(text)
    expect(line.get_by_role("img", name="changes in 24 hours")).to_be_visible()


def test_a_small_lake_shows_every_table_at_once(shown: Shown, opened: Open) -> None:
    tables = opened(shown[1]).visit().get_by_role("region", name="Pipeline shop").get_by_role("row")
    row = tables.filter(has_text="public.customers")
    for text in ("healthy", "465", "100 %"):
        expect(row).to_contain_text(text)
    expect(tables.filter(has_text="public.orders")).to_contain_text("held")
    expect(tables.filter(has_text="public.visits")).to_contain_text("sweeping")


def test_the_flow_shows_each_gate(shown: Shown, opened: Open) -> None:
    page = opened(shown[1]).visit("shop/flow")
    for state, table in (("open", CUSTOMERS), ("held", ORDERS), ("sweeping", VISITS)):
        lane = page.locator(f".flow-lane.lane-{state}").filter(has_text=table)
        expect(lane.locator(f".gate-glyph.gate-{state}")).to_be_visible()
        expect(lane).to_contain_text(state)
    expect(page.locator(".flow").get_by_text("not reachable")).to_be_visible()  # it is away
    expect(page.get_by_role("row").filter(has_text="the source could not be asked")).to_be_visible()


@pytest.mark.parametrize(
    ("table", "helps"),
    [
        (CUSTOMERS, []),
        (ORDERS, ["Look at it and approve it"]),
        ("public.payments", []),
        (VISITS, []),
    ],
)
def test_a_button_stands_out_only_where_it_helps(
    shown: Shown, opened: Open, table: str, helps: list[str]
) -> None:
    page = opened(shown[1]).visit(f"shop/tables/{table}")
    head = page.locator(".head")
    expect(head.get_by_role("button", name="Sweep …")).to_be_visible()
    assert head.locator(".primary").all_inner_texts() == helps


def test_why_a_table_is_held_is_told_in_fields(shown: Shown, opened: Open) -> None:
    page = opened(shown[1]).visit(f"shop/tables/{ORDERS}")
    fields = page.get_by_role("region", name="A schema change holds this table")
    for name, value in (("Why", "amount has another type"), ("By", "apply run"), ("Since", "ago")):
        field = fields.locator("dl > div").filter(has=page.get_by_text(name, exact=True))
        expect(field.get_by_role("definition")).to_contain_text(value)


def test_a_table_tells_its_past(shown: Shown, opened: Open) -> None:
    lake, served = shown
    visitor = opened(served)
    page = visitor.visit(TABLE)
    expect(page.locator(".timeline li").first).to_contain_text("inserted")
    expect(page.locator("canvas")).to_have_count(2)
    visitor.visit(f"{TABLE}/snapshots")
    current = lake.catalog.load_table(("shop", "customers")).current_snapshot()
    assert current is not None
    row = page.get_by_role("row").filter(has_text=str(current.snapshot_id))  # every digit of it
    expect(row).to_contain_text("current")
    visitor.visit(f"{TABLE}/files")
    expect(page.get_by_role("row").filter(has_text="compact")).to_contain_text("due")


def test_a_row_is_followed_by_its_key(shown: Shown, opened: Open) -> None:
    page = opened(shown[1]).visit(f"{TABLE}/row")
    page.get_by_label("id").fill("1")
    page.get_by_role("button", name="Show its changes").click()
    expect(page.get_by_role("heading", name="updated").first).to_contain_text("in snapshot")
    expect(page.get_by_role("heading", name="created")).to_be_visible()
    expect(page.get_by_text("Bergen").first).to_be_visible()


def test_values_of_a_dead_letter_are_shown_on_request_only(shown: Shown, opened: Open) -> None:
    page = opened(shown[1]).visit("shop/tables/public.payments/letters")
    expect(page.get_by_text("amount is no numeric(12,2)")).to_be_visible()
    expect(page.get_by_text("not a number")).to_have_count(0)
    page.get_by_role("button", name="Values").first.click()
    expect(page.get_by_role("cell", name="not a number")).to_be_visible()


def test_the_theme_can_be_chosen_and_stays(shown: Shown, opened: Open) -> None:
    page = opened(shown[1]).visit()
    page.get_by_role("button", name="Use the dark theme").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_the_keyboard_is_enough(shown: Shown, opened: Open) -> None:
    page = opened(shown[1]).visit("shop")
    first = page.get_by_role("button", name="Verify …").first
    expect(first).to_be_visible()
    page.keyboard.press("Tab")  # the view has the focus: the first thing in it is next
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(first).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search tables")).to_be_focused()
    page.keyboard.type("orders")
    expect(page.get_by_role("row").filter(has_text=CUSTOMERS)).to_have_count(0)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Served]:
    lake = configured(tmp_path / "empty")
    (lake.folder / "pipelines" / "shop.yaml").unlink()
    with serving(lake.folder) as served:
        yield served


def test_without_a_pipeline_it_says_how_to_begin_and_sees_the_first_one(
    empty: Served, opened: Open
) -> None:
    page = opened(empty).visit()
    expect(page.get_by_text("No pipeline yet")).to_be_visible()
    assert axe(page) == []
    (empty.folder / "pipelines" / "wrong.yaml").write_text("pipeline_id: wrong\n")
    expect(page.get_by_role("row", name="Pipeline wrong")).to_contain_text("source")


def test_a_stranger_is_asked_for_the_token(shown: Shown, opened: Open) -> None:
    page = opened(shown[1], token=None).visit()
    for token, answer in (("wrong-token-wrong-token", "refused"), (shown[1].token, CUSTOMERS)):
        page.get_by_label("API token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text(answer).first).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_a_reader_who_may_not_act_is_told_so(shown: Shown, opened: Open) -> None:
    lake, served = shown
    page = opened(served, token=READER).visit(f"shop/tables/{CUSTOMERS}")
    page.get_by_role("button", name="Hold …").click()
    page.get_by_label("Reason").fill("tea")
    page.get_by_role("button", name="Hold", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("has the role read; this needs edit")
    assert lake.state(CUSTOMERS) == "open"


def test_silence_is_said_and_ends_by_itself(tmp_path: Path, opened: Open) -> None:
    lake, port = configured(tmp_path / "lake"), free_port()
    with serving(lake.folder, port) as served:
        page = opened(served).visit()
        settled(page)
    expect(page.get_by_text("Not live: figures from")).to_be_visible()
    page.goto(f"{served.url}#/shop")  # the page is still there, its server is not
    expect(page.get_by_text("Not live")).to_be_visible()
    with serving(lake.folder, port):
        expect(page.get_by_text("Live", exact=True)).to_be_visible(timeout=30_000)
