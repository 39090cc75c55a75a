"""The warehouse has no room: a clear error that passes, nothing half done, and then it goes on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.faults.full_disk import small_disk
from tests.support.faults import Files, capture_process, halt_at
from tests.support.postgres import SourceDatabase
from tests.support.stack import Stack
from tidegate.config.platform import PlatformConfig, RetryConfig, SweepConfig
from tidegate.errors import Decision, ExitCode
from tidegate.jobs.apply import run_apply
from tidegate.jobs.capture import run_capture
from tidegate.lake import positions
from tidegate.lake.catalog import home
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.gate import GateState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "public.papers"
ROWS = 20_000


class Papers(Stack):
    """One table whose rows do not compress, on a small disk of its own."""

    disk: Any

    def write(self, first: int) -> None:
        self.db.sql(
            "INSERT INTO papers SELECT i, md5(i::text) || md5((i * 7)::text)"
            f" FROM generate_series({first}, {first + ROWS - 1}) i"
        )

    def equal(self) -> bool:
        return self.lake(TABLE, "id", "body") == sorted(
            self.db.rows("SELECT id, body FROM papers"), key=repr
        )

    def apply(self) -> Any:
        self.runs += 1
        run = f"apply{self.runs}"
        (table,) = run_apply(self.spark, self.pipeline, self.platform, run=run).tables
        return table

    def head(self) -> Any:
        return ChangeLog(self.catalog, self.pipeline).head()


@pytest.fixture
def papers(
    request: pytest.FixtureRequest,
    source_db: SourceDatabase,
    spark: SparkSession,
    spark_platform: PlatformConfig,
) -> Iterator[Papers]:
    """``log`` puts the change log on the small disk, ``lake`` the lake's own table."""
    platform = spark_platform.model_copy(
        update={
            "retry": RetryConfig(max_attempts=2, initial_wait_seconds=0.1),
            "sweep": SweepConfig(chunk_rows=10_000, parallelism=1),
        }
    )
    source_db.sql("CREATE TABLE papers (id int PRIMARY KEY, body text)")
    pipeline = source_db.pipeline(TABLE)
    where = {"log": pipeline.control_namespace, "lake": pipeline.namespace}[request.param]
    made = Papers(source_db, spark, platform, pipeline)
    with small_disk(home(platform) / "warehouse" / where) as made.disk:
        made.deploy()
        yield made


def jvm() -> int:
    """This process's own Spark."""
    (found,) = (c.pid for c in psutil.Process().children() if c.name() == "java")
    return found


def files_of(folder: Path) -> set[str]:
    return {str(file) for file in folder.rglob("*.parquet")}


@pytest.mark.parametrize("papers", ["log"], indirect=True)
def test_capture_fails_clearly_and_goes_on_when_there_is_room(
    papers: Papers, tmp_path: Path
) -> None:
    papers.write(1)
    before = papers.head()
    files = Files.write(tmp_path, papers.pipeline, papers.platform)
    environment = halt_at("capture.after_schema")
    with capture_process(files, tmp_path / "capture", "full", environment) as process:
        process.wait_for_halt()
        with papers.disk.full(process.pid):
            process.wake()
            assert process.wait() == ExitCode.RUNTIME
            error = process.result().error
            assert error is not None and error.decision is Decision.RETRY, error
            assert error.code == "lake.storage_full"
            assert papers.head() == before
    # What could not be finished does not stay behind and take the room for good.
    log = ChangeLog(papers.catalog, papers.pipeline).table()
    assert files_of(Path(log.location().removeprefix("file://"))) == set()
    assert run_capture(papers.pipeline, papers.platform).rows == ROWS
    papers.swept(TABLE)
    assert papers.equal()


@pytest.mark.parametrize("papers", ["lake"], indirect=True)
def test_sweep_and_apply_fail_clearly_and_go_on_when_there_is_room(papers: Papers) -> None:
    first = itertools.count(1, ROWS)
    papers.write(next(first))
    papers.swept(TABLE)

    papers.write(next(first))
    run_capture(papers.pipeline, papers.platform)
    head, position = papers.table(TABLE).current_snapshot(), positions.applied(papers.table(TABLE))
    with papers.disk.full(jvm()):
        table = papers.apply()
        assert table.error is not None and table.error.decision is Decision.RETRY, table.error
        assert table.error.code == "lake.storage_full"
        assert papers.table(TABLE).current_snapshot() == head
        assert positions.applied(papers.table(TABLE)) == position
    assert papers.apply().inserted == ROWS
    assert papers.equal()

    papers.write(next(first))
    head = papers.table(TABLE).current_snapshot()
    with papers.disk.full(jvm()):
        (swept,) = papers.sweep(TABLE).tables
        assert swept.error is not None and swept.error.decision is Decision.RETRY, swept.error
        assert swept.error.code == "lake.storage_full"
        assert papers.table(TABLE).current_snapshot() == head
        assert papers.state(TABLE).state is GateState.SWEEPING
    papers.swept(TABLE)
    assert papers.equal()
