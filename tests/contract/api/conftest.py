"""One server for all tests that change nothing, and one of its own for those that do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api import Served
from tests.support.api import served as serving


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serving(tmp_path_factory.mktemp("api"))


@pytest.fixture
def own_api(tmp_path: Path) -> Iterator[Served]:
    yield from serving(tmp_path)
