"""``offsets`` and ``consume`` on a real log, by the command line, as far as no Spark is needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from tests.support.cli import Desk
from tests.support.shop import ORDERS, Shop
from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import Position


@pytest.fixture
def cli(desk: Callable[..., Desk], pipeline: PipelineConfig) -> Desk:
    """The files that say what the fixtures ``platform`` and ``pipeline`` say."""
    made = desk()
    source = {"database": "shop", "password": "unused", "tables": list(pipeline.source.tables)}
    files = {
        "shop.yaml": {"pipeline_id": "shop", "source": source},
        "platform.yaml": {"lake": {"home": "lake"}},
    }
    for name, content in files.items():
        (made.folder / name).write_text(yaml.safe_dump(content))
    return made


@pytest.fixture
def cuts(shop: Shop) -> list[Position]:
    """Two boundaries with three changes of ``orders`` between; the table stands at the second."""
    first = shop.capture()
    for number in range(3):
        shop.orders.insert(str(number), "x", None)
        shop.orders.commit()
    second = shop.capture()
    shop.stands(ORDERS, [first], "sweep")
    shop.stands(ORDERS, [second])
    return [first, second]


def test_what_would_be_replayed_is_said_before_anything_is_done(
    cli: Desk, cuts: list[Position]
) -> None:
    shown = {t["table"]: t for t in cli.result("offsets", "shop.yaml")["tables"]}
    assert shown[ORDERS]["position"] == str(cuts[1])
    assert shown[ORDERS]["lowest"] == str(cuts[0])
    back = ("offsets", "set", "shop.yaml", "-t", ORDERS, "--position", str(cuts[0]))
    planned = cli.result(*back, "--dry-run")
    assert (planned["status"], planned["direction"], planned["changes"]) == ("planned", "replay", 3)
    asked = cli.result(*back, code=2)
    assert asked["code"] == "cli.not_confirmed"
    assert "3 changes, committed 2024-05-01" in asked["message"]
    there = ("offsets", "set", "shop.yaml", "-t", ORDERS, "--position", str(cuts[1]))
    assert cli.result(*there)["direction"] == "none", "nothing to ask, nothing to do"
    said = cli.run("offsets", "shop.yaml").stdout
    assert str(cuts[1]) in said and "captured through" in said


def test_changes_are_printed_for_people(cli: Desk, cuts: list[Position]) -> None:
    done = cli.run("consume", "shop.yaml", "--limit", "2")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "  c  public.orders  id=0  id=0 note=x price=null" in first
    assert second.endswith(f"{cuts[0].epoch}/{second.rpartition('/')[2]}")
