"""What is kept of a conformance run: enough to go on later, and for a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tidegate.config.platform import PlatformConfig
from tidegate.observability.progress import silent
from tidegate.testing.conformance.cases import ValueCase
from tidegate.testing.conformance.matrix import Matrix
from tidegate.testing.conformance.page import write_page
from tidegate.testing.conformance.results import Failure, Part, all_parts, fingerprint

CASE = ValueCase.model_validate({"name": "n", "type": "int", "lake": "int", "values": ["1"]})
OTHER = CASE.model_copy(update={"lake": "long"})
READERS: Any = {"pyiceberg": None, "duckdb": None}


def part(**own: Any) -> Part:
    common: dict[str, Any] = {"mode": "upsert", "path": "log", "readers": tuple(READERS)}
    found = {"suite": fingerprint([CASE]), "tidegate": "1", "day": "2026-11-17", "cases": 1}
    return Part("PostgreSQL 15", **common, **found, checks=2, seconds=3.0, not_run={}, **own)


def matrix(folder: Path, case: ValueCase = CASE, readers: Any = READERS) -> Matrix:
    spark: Any = None
    return Matrix(spark, PlatformConfig(), [case], readers, folder, silent)


def test_a_part_is_read_as_it_was_kept(tmp_path: Path) -> None:
    kept = part(failures=(Failure("n", "log", "upsert", "duckdb", "é"),))
    kept.save(tmp_path / "new" / "p.json")
    assert all_parts(tmp_path / "new") == [kept]


def test_what_passed_is_not_run_again(tmp_path: Path) -> None:
    part().save(tmp_path / "postgres-15-upsert-log.json")
    left = matrix(tmp_path).missing("postgres-15", ["upsert"], ["log", "both"])
    assert [place.path for place in left] == ["both"]
    asked = ("postgres-15", ["upsert"], ["log"])
    assert matrix(tmp_path, OTHER).missing(*asked), "the cases changed"
    assert matrix(tmp_path, readers=READERS | {"spark": None}).missing(*asked)
    part(failures=(Failure("n", "log", "upsert", "duckdb", "why"),)).save(
        tmp_path / "postgres-15-upsert-log.json"
    )
    assert matrix(tmp_path).missing(*asked), "it failed"


def test_the_page_tells_what_ran_and_what_failed(tmp_path: Path) -> None:
    failed = replace(
        part(failures=(Failure("n", "sweep", "upsert", "duckdb", "is 2"),)), path="sweep"
    )
    write_page(tmp_path / "page.md", [part(), failed])
    text = (tmp_path / "page.md").read_text()
    assert "| PostgreSQL 15 | upsert | 1 | 2, 1 | 2, 0 | 0.1 | 2026-11-17 |" in text
    assert "**failed**: `n` (sweep, upsert, duckdb): is 2" in text
