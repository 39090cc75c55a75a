"""One server for all tests that change nothing, and one a module for those that do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.api import Served
from tests.support.api import served as serving


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serving(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="module")
def own_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """For a module's tests that change something: each asserts what it changed itself."""
    yield from serving(tmp_path_factory.mktemp("own"))
