"""Every case of MySQL and MariaDB on every path, on both servers: minutes, so marked ``long``.

``make test-conformance ARGS="-k mariadb"`` runs them; without a JVM every value case runs in
``tests/integration/mysql/test_case_texts.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.conftest import Prove
from tidegate.testing.conformance.cases import PATHS, Case, load_cases
from tidegate.testing.conformance.mysql import started_server
from tidegate.testing.conformance.server import Server
from tidegate.testing.mariadb_server import Flavour

pytestmark = [
    pytest.mark.spark,
    pytest.mark.mysql,
    pytest.mark.long,
    pytest.mark.timeout(1200),
]

CASES = Path(__file__).parent / "cases" / "mysql"


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    flavour: Flavour = request.param
    with started_server(flavour) as started:
        yield started


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases(CASES)


def test_there_are_as_many_cases_as_the_documentation_says(cases: list[Case]) -> None:
    assert len(cases) >= 300


@pytest.mark.parametrize("path", PATHS)
def test_the_lake_holds_what_the_source_holds(
    prove: Prove, server: Server, cases: list[Case], path: str
) -> None:
    report = prove(server, cases, path)  # some cases are of one of the servers alone
    assert report.checks > len(report.cases)
