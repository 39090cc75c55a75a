"""Figures for Prometheus, and that dashboards and alerts name figures that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.api import TOKENS, Served
from tidegate.api.access import Role
from tidegate.lake.reports import Reports
from tidegate.observability.metrics import METRICS

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy/prometheus/tidegate.rules.yaml"
DASHBOARD = ROOT / "deploy/grafana/tidegate.json"
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
KNOWN = {f"{m.name}{suffix}": m for m in METRICS for suffix in _SUFFIXES[m.kind]}


def scraped(api: Served) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = api.call("GET", "/metrics", TOKENS[Role.READ])
    assert answer.status_code == 200, answer.text
    families = text_string_to_metric_families(answer.text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def labels(**pairs: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"pipeline": "shop", **pairs}.items()))


def test_figures_come_from_the_lake(api: Served) -> None:
    found = scraped(api)
    orders = labels(table="public.orders")
    assert found["tidegate_dead_letters", orders] == 1
    assert found["tidegate_gate_state", labels(table="public.orders", state="held")] == 1
    assert found["tidegate_table_data_files", orders] == 2
    assert found["tidegate_changes_captured_total", labels()] == 5
    assert found["tidegate_changes_applied_total", labels(table="public.orders", op="updated")] == 1
    assert found["tidegate_run_duration_seconds_count", labels(kind="apply")] == 1
    assert found["tidegate_source_reachable", labels()] == 0
    assert {name for name, _ in found} <= set(KNOWN)


def test_what_a_job_did_is_counted_after_it_is_gone(
    own_api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.api.exposition.KEPT_SECONDS", 0.0)
    before = scraped(own_api)
    Reports(own_api.catalog, own_api.pipeline).add("capture", "c2", {"rows": 7, "seconds": 1.0})
    after = scraped(own_api)
    name = ("tidegate_changes_captured_total", labels())
    assert after[name] - before[name] == 7


def test_a_broken_pipeline_is_a_figure_and_not_the_end(
    own_api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.api.exposition.KEPT_SECONDS", 0.0)
    (own_api.pipelines.directory / "bad.yaml").write_text("pipeline_id: bad\n")
    found = scraped(own_api)
    assert found["tidegate_pipeline_up", (("pipeline", "bad"),)] == 0
    assert found["tidegate_pipeline_up", labels()] == 1


def expressions() -> list[Any]:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    found = [pytest.param(rule["expr"], id=rule["alert"]) for rule in alerts]
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        found += [pytest.param(t["expr"], id=panel["title"]) for t in panel.get("targets", ())]
    return found


@pytest.mark.parametrize("expression", expressions())
def test_every_figure_that_is_asked_for_exists(expression: str) -> None:
    named = re.findall(r"tidegate_\w+", expression)
    assert named
    for name in named:
        assert name in KNOWN, f"no metric {name}"
    for name, inside in re.findall(r"(tidegate_\w+)\{([^}]*)\}", expression):
        for label in re.findall(r"(\w+)\s*=~?", inside):
            assert label in (*KNOWN[name].labels, "le"), f"{name} has no label {label}"


def test_every_alert_has_a_runbook_that_exists() -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            page, _, anchor = rule["annotations"]["runbook"].partition("#")
            text = (ROOT / page).read_text(encoding="utf-8")
            anchors = {
                re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
                for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            }
            assert anchor in anchors, f"{rule['alert']}: {page} has no {anchor}"
            assert rule["labels"]["severity"] in ("page", "ticket")
