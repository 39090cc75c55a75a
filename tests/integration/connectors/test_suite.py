"""The connectors that come with Tidegate pass the suite that third parties run. No JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.mysql import MysqlDatabase
from tests.support.postgres import SourceDatabase
from tests.support.subjects import MysqlSubject, PostgresSubject
from tidegate.testing.connector import ConnectorSuite, Subject


@pytest.mark.postgres
class TestPostgres(ConnectorSuite):
    @pytest.fixture
    def subject(self, source_db: SourceDatabase) -> Subject:
        return PostgresSubject(source_db)


@pytest.mark.mysql
class TestMariadb(ConnectorSuite):
    @pytest.fixture
    def subject(self, mysql_db: MysqlDatabase) -> Iterator[Subject]:
        yield MysqlSubject(mysql_db)
