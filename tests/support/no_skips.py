"""Where ``CI=true``, a skipped test is a failure: nothing may go missing for want of a server."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

STRICT = os.environ.get("CI", "").lower() == "true"


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not STRICT or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{reason} (CI=true: a skipped test is a failure)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse(report)
    return report
