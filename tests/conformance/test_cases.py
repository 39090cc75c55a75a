"""Every case on every path, on PostgreSQL 15; servers and modes besides: make conformance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.conftest import Prove
from tidegate.testing.conformance.cases import PATHS, Case, ValueCase, load_cases
from tidegate.testing.conformance.packing import expected_adjusted
from tidegate.testing.conformance.postgres import started_server
from tidegate.testing.conformance.server import Server

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

CASES = Path(__file__).parent / "cases"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with started_server(15) as started:
        yield started


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases(CASES)


def test_there_are_as_many_cases_as_the_documentation_says(cases: list[Case]) -> None:
    assert len(cases) >= 650


@pytest.mark.parametrize("path", PATHS)
def test_the_lake_holds_what_the_source_holds(
    prove: Prove, server: Server, cases: list[Case], path: str
) -> None:
    assert prove(server, cases, path).checks > len(cases)


def test_history_counts_an_adjusted_value_once(
    prove: Prove, server: Server, cases: list[Case]
) -> None:
    """A change that ends a version and begins another is one value that a policy acted on."""
    adjusted = [
        case for case in cases if isinstance(case, ValueCase) and expected_adjusted(case, 1)
    ]
    assert prove(server, adjusted, "both", "history").checks >= len(adjusted) > 30
