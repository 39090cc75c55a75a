"""Every value case of the conformance suite without a JVM, on MariaDB and on MySQL: what the log
prints is what a sweep selects (I6), and the log and the catalog describe one schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mysql import MysqlDatabase
from tidegate.connectors.mysql import capture, discover, types
from tidegate.connectors.mysql.connection import connect, query
from tidegate.schema.types import Kind
from tidegate.testing.conformance.cases import ValueCase, load_cases
from tidegate.testing.conformance.mysql import MysqlServer
from tidegate.testing.conformance.packing import Unit, pack
from tidegate.testing.mariadb_server import PASSWORD, USER, Flavour, running

pytestmark = pytest.mark.mysql

CASES = Path(__file__).parents[2] / "conformance" / "cases" / "mysql"
NAME = "texts"
FLOATS = (Kind.FLOAT, Kind.DOUBLE)
NOT_IN_THE_CATALOG = {"enum_odd_labels"}
"""The catalog prints labels in three-byte UTF-8: one of four bytes is a question mark there."""


@pytest.fixture(scope="module", params=["mariadb", pytest.param("mysql", marks=pytest.mark.long)])
def source(request: pytest.FixtureRequest) -> Iterator[tuple[MysqlDatabase, MysqlServer]]:
    flavour: Flavour = request.param
    with running(flavour) as server:
        server.execute(f"CREATE DATABASE {NAME}")
        url = f"mysql://{USER}:{PASSWORD}@127.0.0.1:{server.port}"
        yield MysqlDatabase(server, NAME), MysqlServer(url)


def logged(db: MysqlDatabase, server: MysqlServer, unit: Unit) -> tuple[dict[str, Any], Any]:
    """The unit's rows by their ids, as the log prints them, and the schema it describes."""
    table = unit.tables["t"].name
    start = capture.new_epoch(db.settings(table))
    server.execute(NAME, unit.name, [*unit.ddl, *unit.before])
    batches = db.changes(start, table)
    rows = [row["after"] for batch in batches for row in batch.rows.to_pylist()]
    return {row[0]: row for row in rows}, batches[-1].schemas[-1].schema


def test_the_log_prints_what_a_sweep_selects(source: tuple[MysqlDatabase, MysqlServer]) -> None:
    db, server = source
    cases = [case for case in load_cases(CASES) if isinstance(case, ValueCase)]
    lacking = server.lacking(cases)
    units = pack([case for case in cases if case.name not in lacking], server.dialect(NAME))
    wrong: list[str] = []
    for unit in units:
        rows, schema = logged(db, server, unit)
        table = unit.tables["t"]
        connection = connect(db.settings(table.name))
        try:
            live = discover.discover(connection, table)
            texts = ", ".join(types.text_expression(column) for column in live.columns)
            swept = query(connection, f"SELECT {texts} FROM {table.sql}")
        finally:
            connection.close()
        assert len(swept) == len(rows) == unit.rows
        for at, (mine, theirs) in enumerate(zip(live.columns, schema.columns, strict=True)):
            if mine != theirs and mine.name not in NOT_IN_THE_CATALOG:
                wrong.append(f"{mine.name}: {mine.source_type}, the log: {theirs.source_type}")
            if mine.type.kind not in FLOATS and any(row[at] != rows[row[0]][at] for row in swept):
                wrong.append(f"{mine.name}: the paths differ")
    assert wrong == []
    assert sum(len(unit.cases) for unit in units) > 200
