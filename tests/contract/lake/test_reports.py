"""Reports: one append per run, newest first, folded before they pile up."""

from __future__ import annotations

import pytest
from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.errors import ConfigError, FatalError
from tidegate.lake import reports as module
from tidegate.lake.reports import Reports
from tidegate.names import FORMAT_PROPERTY


@pytest.fixture
def reports(catalog: Catalog, pipeline: PipelineConfig) -> Reports:
    return Reports(catalog, pipeline)


def test_no_report_yet(reports: Reports) -> None:
    assert reports.recent() == []


def test_the_newest_come_first_by_kind(reports: Reports) -> None:
    reports.add("capture", "r1", {"rows": 5})
    reports.add("apply", "r1", {"rows": 4, "at": object.__name__})
    reports.add("capture", "r2", {"rows": 6})
    assert [(r.kind, r.run) for r in reports.recent(limit=2)] == [
        ("capture", "r2"),
        ("apply", "r1"),
    ]
    assert [r.body["rows"] for r in reports.recent("capture")] == [6, 5]


def test_an_unknown_kind_is_refused(reports: Reports) -> None:
    with pytest.raises(ConfigError, match="no kind of report"):
        reports.add("gossip", "r1", {})


def test_reports_are_folded_and_the_oldest_forgotten(
    catalog: Catalog, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_FILES", 5)
    monkeypatch.setattr(module, "KEPT", 7)
    for number in range(12):
        reports.add("apply", f"r{number}", {})
    files = list(catalog.load_table(reports.identifier).scan().plan_files())
    assert len(files) < 5
    runs = [report.run for report in reports.recent()]
    assert runs[:7] == [f"r{n}" for n in range(11, 4, -1)]
    assert [r.seq for r in reports.recent(limit=1)] == [12]


def test_totals_outlive_the_reports_they_were_made_of(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_FILES", 4)
    monkeypatch.setattr(module, "KEPT", 3)
    seen = []
    for number in range(12):
        entry = {"table": "public.t", "inserted": 2, "updated": 1}
        reports.add("apply", f"r{number}", {"tables": [entry], "seconds": float(number)})
        reports.add("capture", f"c{number}", {"rows": 3, "seconds": 0.1})
        found = reports.totals()
        seen.append((found.captured, found.applied["public.t", "inserted"]))
    assert seen == [(3 * n, 2 * n) for n in range(1, 13)]
    assert sum(found.durations["apply"].counts) == 12
    assert found.durations["apply"].seconds == sum(range(12))
    assert len(reports.recent()) < 12 and "totals" not in {r.kind for r in reports.recent()}


def test_a_newer_releases_format_is_refused(catalog: Catalog, reports: Reports) -> None:
    reports.add("apply", "r1", {})
    table = catalog.load_table(reports.identifier)
    table.transaction().set_properties({FORMAT_PROPERTY: "99"}).commit_transaction()
    with pytest.raises(FatalError) as caught:
        reports.recent()
    assert caught.value.code == "lake.format_unknown"
