"""The source guard on a real PostgreSQL: figures, verdicts, and acting by capturing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.cli import Cli, Shell, configured
from tests.support.faults import Files, capture_process
from tests.support.postgres import SourceDatabase
from tidegate.config.platform import PlatformConfig
from tidegate.testing.postgres_server import PostgresServer, running

pytestmark = pytest.mark.postgres

KEEP = 48 * 1024 * 1024
SEGMENT = 1024 * 1024
MOST_CAPTURES = 4
"""A capture lets the server go to a note of its running transactions. Checkpoints write them, and
the server itself every 15 s, so that the first one may lie before what was written in between."""


@pytest.fixture(scope="module")
def small_server() -> Iterator[PostgresServer]:
    """A server whose slots may retain 48 MB, in segments of 16."""
    with running(16, config={"max_slot_wal_keep_size": "48MB", "max_wal_size": "64MB"}) as server:
        yield server


@pytest.fixture
def db(small_server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[SourceDatabase]:
    name = f"guard{abs(hash(request.node.name)) % 10**6}"
    database = SourceDatabase(small_server, small_server.create_database(name))
    database.sql("CREATE TABLE items (id int PRIMARY KEY, v text)")
    yield database
    database.drop()


def write_wal(db: SourceDatabase, megabytes: int) -> None:
    """Messages outside transactions: WAL that no table takes."""
    for _ in range(megabytes):
        db.sql("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1048576))")
    db.sql("SET synchronous_commit = on", "SELECT pg_current_xact_id()")  # all of it is written


def limits(cli: Cli, **guard: float) -> None:
    platform = yaml.safe_load((cli.folder / "platform.yaml").read_text())
    (cli.folder / "platform.yaml").write_text(yaml.safe_dump(platform | {"guard": guard}))


def checks(found: dict[str, object]) -> dict[str, str]:
    return {f["check"]: f["verdict"] for f in found["findings"]}  # type: ignore[index, attr-defined]


def test_figures_verdicts_and_acting(db: SourceDatabase, tmp_path: Path, shell: Shell) -> None:
    cli = configured(tmp_path, db, "public.items", shell=shell)
    assert cli.result("guard")["verdict"] == "ok", "not deployed: nothing is held"
    cli.result("deploy")
    db.sql("INSERT INTO items VALUES (1, 'x')")
    cli.result("capture")
    found = cli.result("guard")
    assert found["verdict"] == "ok", found
    source = found["figures"]["source"]
    assert source["keep_bytes"] == KEEP
    assert source["limit"] == "max_slot_wal_keep_size"
    assert 0 < source["left_bytes"] <= KEEP + 16 * SEGMENT
    assert source["xmin_age"] is not None and source["xmin_age"] < 1_000_000
    assert 0 <= source["capture_seconds"] < 600
    assert found["figures"]["log"]["bytes"] > 0
    assert found["figures"]["log"]["oldest_seconds"] < 600

    # 40 of 48 MB: 80 %, the verdict is act, the exit code says so, and nothing is done by itself.
    write_wal(db, 40)
    found = cli.result("guard", code=1)
    assert checks(found)["wal"] == "act"
    kept = found["figures"]["source"]["retained_bytes"]
    assert kept >= 40 * SEGMENT
    status = cli.result("status")
    assert status["guard"]["verdict"] == "act", "status and lag say it too"
    assert "retains" in cli.run("lag").stdout
    before = db.value("SELECT confirmed_flush_lsn FROM pg_replication_slots")

    # --act captures; the slot is the same one, moved on.
    for _ in range(MOST_CAPTURES):
        db.sql("CHECKPOINT")
        found = json.loads(cli.run("guard", "--act", "--json").stdout)["result"]
        if checks(found)["wal"] == "ok":
            break
    assert checks(found)["wal"] == "ok", found
    # At this pace the limit is minutes away, which is worth saying once a pace can be seen.
    assert found["verdict"] in ("ok", "warn"), found
    after = db.value("SELECT confirmed_flush_lsn FROM pg_replication_slots")
    assert before != after
    assert found["figures"]["source"]["retained_bytes"] < kept
    assert [e["action"] for e in cli.result("audit")["entries"]] == ["deploy"]
    assert cli.result("recover")["status"] == "nothing lost", "and no Spark was started to say so"


def test_capture_says_in_its_log_what_the_source_holds(
    db: SourceDatabase, platform: PlatformConfig, tmp_path: Path, shell: Shell
) -> None:
    cli = configured(tmp_path, db, "public.items", shell=shell)
    cli.result("deploy")
    write_wal(db, 30)
    db.sql("CHECKPOINT")
    pipeline = db.pipeline("public.items")
    home = platform.model_copy(
        update={"lake": platform.lake.model_copy(update={"home": str(tmp_path / "home")})}
    )
    (tmp_path / "files").mkdir()
    files = Files.write(tmp_path / "files", pipeline, home)
    with capture_process(files, tmp_path / "job", "r1") as process:
        assert process.wait() == 0, process.said()
        assert "guard: slot" in process.said()
        assert "of max_slot_wal_keep_size" in process.said()
    # No row of ours was among it, and the pipeline had just noted its place: released all the same.
    for n in range(2, 2 + MOST_CAPTURES):
        with capture_process(files, tmp_path / f"job{n}", f"r{n}") as process:
            assert process.wait() == 0, process.said()
            if "guard: slot" not in process.said():
                break
        db.sql("CHECKPOINT")
    assert "guard: slot" not in process.said(), "a healthy source is one quiet line"
    assert "guard  slot=" in process.said()


def test_a_source_that_is_away_and_a_user_who_may_not_look(
    db: SourceDatabase, tmp_path: Path, shell: Shell
) -> None:
    cli = configured(tmp_path, db, "public.items", shell=shell)
    cli.result("deploy")
    away = configured(tmp_path, db, "public.items", port=1, shell=shell)
    found = away.result("guard", code=1)
    assert checks(found)["source"] == "act"
    db.sql(
        "DROP ROLE IF EXISTS plain",
        "CREATE ROLE plain LOGIN REPLICATION PASSWORD 'tidegate'",
    )
    plain = configured(tmp_path, db, "public.items", username="plain", shell=shell)
    plain.variables["TEST_SOURCE_PASSWORD"] = "tidegate"
    limits(plain, wal_disk_bytes=10**9)
    found = plain.result("guard")
    assert found["figures"]["source"]["left_bytes"] is not None
    db.sql("DROP ROLE plain")
