"""Every action, from the button to what it did to the lake, or to the work that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import DESKTOP, PHONE, TOKEN, Open, Served
from tests.page.prepared_lake import (
    CUSTOMERS,
    ORDERS,
    PAYMENTS,
    VISITS,
    PreparedLake,
    prepared,
)
from tests.support.api import CLIENT, RecordedRunner, listening
from tidegate.api.access import Role
from tidegate.api.app import create_app
from tidegate.api.pipelines import Pipelines
from tidegate.api.runner import RunState
from tidegate.api.tokens import Holder, TokenAuthorizer
from tidegate.control import dead_letters
from tidegate.control.running import running, start, stop
from tidegate.lake.dead_letter_choice import Choice

ActedOn = tuple[PreparedLake, Served]


def ask(page: Page, button: str) -> Locator:
    """The dialog behind a button."""
    page.get_by_role("button", name=button).first.click()
    return page.get_by_role("dialog")


def test_hold_says_what_will_happen_and_open_undoes_it(acted_on: ActedOn, opened: Open) -> None:
    lake, served = acted_on
    page = opened(served).visit(f"shop/tables/{CUSTOMERS}")
    dialog = ask(page, "Hold …")
    expect(dialog).to_contain_text("stay in the change log until the gate is opened")
    dialog.get_by_role("button", name="Hold").click()
    assert lake.state(CUSTOMERS) == "open", "a reason is needed"
    dialog.get_by_label("Reason").fill("migration at 14:00")
    dialog.get_by_role("button", name="Hold").click()
    expect(dialog).to_contain_text("public.customers: held.")
    dialog.get_by_role("button", name="Close").click()
    assert lake.state(CUSTOMERS) == "held"
    # Pushed by the socket: nothing was reloaded.
    expect(page.locator(".flow-lane")).to_contain_text("migration at 14:00")
    dialog = ask(page, "Open …")
    dialog.get_by_label("Reason").fill("done")
    dialog.get_by_role("button", name="Open").click()
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Hold …")).to_be_visible()
    assert lake.state(CUSTOMERS) == "open"
    assert page.locator(".timeline li").first.inner_text().count("done") == 1


def test_a_sweep_is_given_up_only_when_asked_to(acted_on: ActedOn, opened: Open) -> None:
    lake, served = acted_on
    page = opened(served).visit(f"shop/tables/{VISITS}")
    dialog = ask(page, "Open …")
    dialog.get_by_label("Reason").fill("it hangs")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog.get_by_role("alert")).to_contain_text("sweep")
    assert lake.state(VISITS) == "sweeping"
    dialog.get_by_label("Also give up a sweep").check()
    expect(dialog).to_contain_text("what it has read is thrown away")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog).to_contain_text("public.visits: open.")
    assert lake.state(VISITS) == "open"


def test_a_held_schema_is_compared_tried_and_approved(acted_on: ActedOn, opened: Open) -> None:
    lake, served = acted_on
    page = opened(served).visit(f"shop/tables/{ORDERS}")
    page.get_by_role("link", name="Look at it and approve it").click()
    expect(page.get_by_role("row").filter(has_text="channel").first).to_contain_text("new at the")
    dialog = ask(page, "Approve …")
    dialog.get_by_label("Dry run").check()
    dialog.get_by_role("button", name="Dry run").click()
    expect(dialog).to_contain_text("Would be done")
    dialog.get_by_role("button", name="Close").click()
    assert lake.state(ORDERS) == "held"
    dialog = ask(page, "Approve …")
    dialog.get_by_role("button", name="Approve").click()
    expect(dialog).to_contain_text("Approved")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_text("A schema change waits")).to_have_count(0)
    assert lake.state(ORDERS) == "open"


def test_a_dead_letter_is_discarded(acted_on: ActedOn, opened: Open) -> None:
    lake, served = acted_on
    page = opened(served).visit(f"shop/tables/{PAYMENTS}/letters")
    dialog = ask(page, "Discard …")
    expect(dialog).to_contain_text("will never be applied")
    dialog.get_by_role("button", name="Discard").click()
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_text("amount is no numeric(12,2)")).to_have_count(0)
    left = dead_letters.find(lake.pipeline, lake.platform, [PAYMENTS], Choice()).letters
    assert [letter.role for letter in left] == ["waiting"]


def test_a_failed_sweep_tells_both_ways_on_and_the_hold_before(
    acted_on: ActedOn, opened: Open
) -> None:
    lake, served = acted_on
    lake.gate.hold([PAYMENTS], "wait for finance", "ann")
    lake.gate.begin_sweep("sweep_9", [PAYMENTS], "bob")
    lake.gate.fail_sweep("sweep_9", [PAYMENTS], "the audit found 3 keys twice")
    page = opened(served).visit(f"shop/tables/{PAYMENTS}")
    failed = page.get_by_role("region", name="The sweep failed")
    for text in ("the audit found 3 keys twice", "bob", "sweep_9", "goes on where it ended"):
        expect(failed).to_contain_text(text)
    expect(page.get_by_role("region", name="Held before")).to_contain_text("wait for finance")
    expect(page.locator(".head .primary")).to_have_text("Sweep …")
    lake.gate.open([PAYMENTS], "seen", "ann", abandon=True)
    lake.gate.open([PAYMENTS], "seen", "ann")


def test_a_stopped_pipeline_says_who_stopped_it(acted_on: ActedOn, opened: Open) -> None:
    lake, served = acted_on
    page = opened(served).visit("shop")
    stop(lake.pipeline, lake.platform, reason="the source moves")
    told = page.get_by_role("row").filter(has=page.get_by_role("button", name="Start …"))
    expect(told).to_contain_text("the source moves", timeout=30_000)
    start(lake.pipeline, lake.platform, reason="it has moved")
    expect(told).to_have_count(0, timeout=30_000)


def test_a_pipeline_is_stopped_and_started(acted_on: ActedOn, opened: Open) -> None:
    lake, served = acted_on
    page = opened(served).visit("shop")
    dialog = ask(page, "Stop …")
    expect(dialog).to_contain_text("The source keeps its log meanwhile")
    dialog.get_by_label("Reason").fill("the source is upgraded")
    dialog.get_by_role("button", name="Stop").click()
    expect(dialog).to_contain_text("shop: stopped.")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("row").filter(has_text="the source is upgraded")).to_be_visible()
    assert running(lake.pipeline, lake.platform).state == "stopped"
    dialog = ask(page, "Start …")
    dialog.get_by_label("Reason").fill("upgraded")
    dialog.get_by_role("button", name="Start").click()
    expect(dialog).to_contain_text("shop: started.")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Stop …")).to_be_visible()
    assert running(lake.pipeline, lake.platform).state == "running"


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_long_run_id_does_not_make_the_overview_wider(
    acted_on: ActedOn, opened: Open, size: tuple[int, int]
) -> None:
    lake, served = acted_on
    reason = f"asked for by manual__2026-11-17T08:15:00.123456+00:00_{'0123456789abcdef' * 6}"
    lake.gate.hold([PAYMENTS], reason, "ann")
    visitor = opened(served, size=size)
    page = visitor.visit()
    wrong = page.get_by_role("region", name="Needs attention")
    shown = wrong.get_by_title(reason)
    expect(shown).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    table = wrong.locator(".scroll")
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth"), "nothing to scroll for"
    assert shown.bounding_box()["height"] < 80, "a few lines"  # type: ignore[index]
    visitor.visit(f"shop/tables/{PAYMENTS}")
    expect(page.get_by_role("region", name="Held")).to_contain_text(reason)  # here all of it
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    lake.gate.open([PAYMENTS], "seen", "ann")


# Work that Spark does: what the page asks the runner for. test_jobs.py runs it.


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RecordedRunner, Served]]:
    folder = tmp_path_factory.mktemp("asked") / "lake"
    lake, runner = prepared(folder), RecordedRunner()
    pipelines = Pipelines(folder / "pipelines", lake.platform, folder / "platform.yaml")
    authorizer = TokenAuthorizer([Holder.of("ann", Role.ADMIN, TOKEN)])
    with listening(create_app(pipelines, authorizer, runner)) as url:
        yield runner, Served(folder, f"{url}/")


def last(runner: RecordedRunner) -> tuple[str, dict[str, Any]]:
    work = list(runner.runs.values())[-1].work
    return work.verb.value, dict(work.options)


def test_sweep_has_tables_a_key_range_and_a_dry_run(
    asked: tuple[RecordedRunner, Served], opened: Open
) -> None:
    runner, served = asked
    page = opened(served).visit("shop")
    dialog = ask(page, "Sweep …")
    dialog.get_by_label(CUSTOMERS).check()
    dialog.get_by_label("Only these keys").fill("id >= 10 and id < 20")
    dialog.get_by_label("Dry run").check()
    expect(dialog).to_contain_text("will be re-read for these keys")
    dialog.get_by_role("button", name="Dry run").dblclick()
    expect(dialog).to_contain_text("Waiting to start")
    assert len(runner.runs) == 1, "pressed twice is asked once"
    verb, options = last(runner)
    assert verb == "sweep"
    assert options | {"tables": [CUSTOMERS], "where": "id >= 10 and id < 20"} == options
    assert options["dry_run"] is True


def test_a_run_is_followed_to_its_end_and_linked(
    asked: tuple[RecordedRunner, Served], opened: Open
) -> None:
    runner, served = asked
    page = opened(served).visit(f"shop/tables/{CUSTOMERS}")
    dialog = ask(page, "Verify …")
    dialog.get_by_label("Share of the keys").fill("5%")
    dialog.get_by_role("button", name="Verify").click()
    expect(dialog).to_contain_text("Waiting to start")
    assert last(runner)[0] == "verify"
    assert last(runner)[1]["sample"] == "5%"
    run = list(runner.runs.values())[-1]
    error = {"code": "verify.differs", "message": "2 rows differ", "hint": "run `tidegate verify`"}
    runner.runs[run.id] = replace(
        run, state=RunState.FAILED, link="/dags/x/runs/y", error=error, log=["line of the log"]
    )
    expect(dialog.get_by_text("2 rows differ")).to_be_visible()
    expect(dialog.get_by_role("link", name="Watch the Dag run")).to_have_attribute(
        "href", "/dags/x/runs/y"
    )
    expect(dialog.get_by_text("line of the log")).to_be_visible()


def test_runs_are_listed_with_their_logs(
    asked: tuple[RecordedRunner, Served], opened: Open
) -> None:
    runner, served = asked
    visitor = opened(served)
    page = visitor.visit(f"shop/tables/{CUSTOMERS}")
    dialog = ask(page, "Verify …")
    dialog.get_by_role("button", name="Verify").click()
    expect(dialog).to_contain_text("Waiting to start")
    run = list(runner.runs.values())[-1]
    error = {"code": "verify.differs", "message": "3 rows differ", "hint": "run `tidegate verify`"}
    runner.runs[run.id] = replace(run, state=RunState.FAILED, error=error, log=["its last line"])
    page.keyboard.press("Escape")
    visitor.visit("shop/runs")
    started = page.get_by_role("table", name="Work that was started").get_by_role("row")
    row = started.filter(has_text=run.id)
    for text in ("verify", "failed", "3 rows differ", CUSTOMERS):
        expect(row).to_contain_text(text)
    row.get_by_role("button", name="Log").click()
    log = page.get_by_role("region", name=f"Log of {run.id}")
    expect(log.get_by_text("its last line")).to_be_visible()
    reported = page.get_by_role("table", name="Runs, newest first").get_by_role("row")
    expect(reported.filter(has_text="apply").first).to_contain_text("done")


def test_compaction_rollback_and_redrive_ask_for_what_they_say(
    asked: tuple[RecordedRunner, Served], opened: Open
) -> None:
    runner, served = asked
    visitor = opened(served)
    page = visitor.visit(f"shop/tables/{CUSTOMERS}/files")
    ask(page, "Compact now …").get_by_role("button", name="Compact").click()
    expect(page.get_by_role("dialog")).to_contain_text("Waiting to start")
    assert last(runner) == ("maintain", {"tables": [CUSTOMERS], "force": True, "dry_run": False})
    page.keyboard.press("Escape")

    visitor.visit(f"shop/tables/{CUSTOMERS}/snapshots")
    row = page.get_by_role("row").filter(has=page.get_by_role("button", name="Roll back")).first
    snapshot = row.get_by_role("rowheader").inner_text()
    row.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"goes back to snapshot {snapshot}")
    dialog.get_by_role("button", name="Roll back").click()
    expect(dialog).to_contain_text("Waiting to start")
    assert last(runner)[0] == "rollback"
    assert str(last(runner)[1]["snapshot_id"]) == snapshot
    page.keyboard.press("Escape")

    visitor.visit(f"shop/tables/{PAYMENTS}/letters")
    ask(page, "Redrive all …").get_by_role("button", name="Redrive").click()
    expect(page.get_by_role("dialog")).to_contain_text("Waiting to start")
    assert last(runner)[0] == "redrive"
    assert len(last(runner)[1]["event_ids"]) == 2


def test_a_position_is_set_only_after_the_dry_run_was_shown(
    asked: tuple[RecordedRunner, Served], opened: Open
) -> None:
    runner, served = asked
    page = opened(served).visit(f"shop/tables/{CUSTOMERS}/snapshots")
    before = len(runner.runs)
    dialog = ask(page, "Set position …")
    dialog.get_by_label("Position, or LSN").fill("FF/FFFFFFFF")
    dialog.get_by_role("button", name="Dry run").click()
    expect(dialog.get_by_role("alert")).to_contain_text("offsets.not_captured")
    offsets = CLIENT.get(
        f"{served.url}api/v1/cdc/connectors/shop/offsets",
        headers={"authorization": f"Bearer {TOKEN}"},
    ).json()["tables"][0]
    dialog.get_by_label("Position, or LSN").fill(offsets["lowest"])
    dialog.get_by_label("Reason").fill("apply it again")
    dialog.get_by_role("button", name="Dry run").click()
    expect(dialog.get_by_role("status")).to_contain_text("are applied again to public.customers")
    assert len(runner.runs) == before, "nothing was asked for yet"
    dialog.get_by_label("Forward").check()
    expect(dialog.get_by_role("button", name="Dry run")).to_be_visible()  # another form
    dialog.get_by_label("Forward").uncheck()
    dialog.get_by_role("button", name="Dry run").click()
    dialog.get_by_role("button", name="Set the position").click()
    expect(dialog).to_contain_text("Waiting to start")
    assert last(runner) == (
        "set offset",
        {
            "tables": [CUSTOMERS],
            "position": offsets["lowest"],
            "skip": False,
            "reason": "apply it again",
            "expect": offsets["position"],
        },
    )


def test_it_works_below_any_base_path(
    asked: tuple[RecordedRunner, Served], tmp_path: Path, opened: Open
) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    folder = asked[1].folder
    platform_file = folder / "platform.yaml"
    from tidegate.config.loader import load_platform

    pipelines = Pipelines(folder / "pipelines", load_platform(platform_file), platform_file)
    authorizer = TokenAuthorizer([Holder.of("ann", Role.ADMIN, TOKEN)])
    app = create_app(pipelines, authorizer, RecordedRunner())
    below = Starlette(routes=[Mount("/team/airflow/tidegate", app)])
    with listening(below) as url:
        page = opened(Served(folder, f"{url}/team/airflow/tidegate/")).visit("shop")
        expect(page.get_by_role("row").filter(has_text=CUSTOMERS)).to_contain_text("healthy")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
