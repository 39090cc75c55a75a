"""Files and partitions that are others than before: which of them lost rows that nobody sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.postgres import SourceDatabase
from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.schema_changes import SchemaChanges
from tidegate.envelope.position import boundary, parse_lsn
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy, undeploy
from tidegate.lake.catalog import open_catalog
from tidegate.lake.change_log import ChangeLog
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.unsent import unsent
from tidegate.schema.table_facts import TableFacts

pytestmark = pytest.mark.postgres

EMPTIED, ATTACHED, ANEW = "was emptied or rewritten", "was attached", "detached and attached again"
USING = "nothing tells whether USING"

# What is done to a table $t with the partitions $t_a (a row, 1), $t_m over $t_mb (a row, 101) and
# an empty $t_d; then the words that hold it, with and without the event trigger.
PARTED: Mapping[str, tuple[list[str], str | None, str | None]] = {
    "leaf_truncated": (["TRUNCATE $t_a", "INSERT INTO $t VALUES (2)"], EMPTIED, EMPTIED),
    "branch_truncated": (["TRUNCATE $t_m"], EMPTIED, EMPTIED),
    "truncated_vacuumed": (["TRUNCATE $t_a", "VACUUM FULL $t_a"], EMPTIED, EMPTIED),
    "cleared_and_leaf": (
        ["TRUNCATE $t", "INSERT INTO $t VALUES (3)", "TRUNCATE $t_a"],
        EMPTIED,
        EMPTIED,
    ),
    "leaf_and_cleared": (["TRUNCATE $t_a", "TRUNCATE $t", "INSERT INTO $t VALUES (3)"], None, None),
    "cleared": (["BEGIN; TRUNCATE $t; INSERT INTO $t VALUES (3), (103); COMMIT"], None, None),
    "cleared_altered": (["BEGIN; TRUNCATE $t; ALTER TABLE $t ADD w int; COMMIT"], None, EMPTIED),
    "vacuumed": (
        ["VACUUM FULL $t_a", "VACUUM FULL $t_mb", "UPDATE $t SET v = 9 WHERE id IN (11, 111)"],
        None,
        None,
    ),
    "clustered": (["CLUSTER $t_a USING $t_a_pkey", "REINDEX TABLE $t"], None, None),
    "widened": (["ALTER TABLE $t ALTER v TYPE bigint"], None, EMPTIED),
    "widened_after": (["TRUNCATE $t_a", "ALTER TABLE $t ALTER v TYPE bigint"], EMPTIED, EMPTIED),
    "widened_before": (["ALTER TABLE $t ALTER v TYPE bigint", "TRUNCATE $t_a"], EMPTIED, EMPTIED),
    "filled": (["ALTER TABLE $t ADD w float DEFAULT random()"], None, EMPTIED),
    "returned": (
        [
            "BEGIN; ALTER TABLE $t DETACH PARTITION $t_a; UPDATE $t_a SET v = 5;"
            " ALTER TABLE $t ATTACH PARTITION $t_a FOR VALUES FROM (0) TO (100); COMMIT"
        ],
        ANEW,
        ANEW,
    ),
    "born": (
        [
            "CREATE TABLE $t_n PARTITION OF $t FOR VALUES FROM (200) TO (300)",
            "INSERT INTO $t VALUES (200)",
            "ALTER TABLE $t_n OWNER TO cdc_other",
            "GRANT SELECT (id) ON $t_n TO cdc_other",
        ],
        None,
        None,
    ),
    "born_in_one": (
        [
            "BEGIN; CREATE TABLE $t_n PARTITION OF $t FOR VALUES FROM (200) TO (300)"
            " PARTITION BY RANGE (id); CREATE TABLE $t_nn PARTITION OF $t_n DEFAULT;"
            " INSERT INTO $t VALUES (200); COMMIT"
        ],
        None,
        None,
    ),
    "joined_empty": (
        [
            "CREATE TABLE $t_n (LIKE $t INCLUDING ALL)",
            "ALTER TABLE $t ATTACH PARTITION $t_n FOR VALUES FROM (200) TO (300)",
        ],
        None,
        None,
    ),
    "joined_full": (
        [
            "CREATE TABLE $t_n (LIKE $t INCLUDING ALL)",
            "INSERT INTO $t_n VALUES (201)",
            "ALTER TABLE $t ATTACH PARTITION $t_n FOR VALUES FROM (200) TO (300)",
        ],
        ATTACHED,
        ATTACHED,
    ),
    "joined_in_one": (
        [
            "BEGIN; CREATE TABLE $t_n (x int, id bigint NOT NULL DEFAULT 7, v int);"
            " ALTER TABLE $t_n DROP COLUMN x; INSERT INTO $t_n VALUES (201, 1);"
            " ALTER TABLE $t ATTACH PARTITION $t_n FOR VALUES FROM (200) TO (300); COMMIT",
            "BEGIN; ALTER TABLE $t_n ALTER id SET STATISTICS 7; ROLLBACK",
        ],
        ATTACHED,
        ATTACHED,
    ),
    "joined_by_branch": (
        [
            "CREATE TABLE $t_n (id bigint NOT NULL, v int) PARTITION BY RANGE (id)",
            "CREATE TABLE $t_nn PARTITION OF $t_n DEFAULT",
            "INSERT INTO $t_n VALUES (201)",
            "ALTER TABLE $t ATTACH PARTITION $t_n FOR VALUES FROM (200) TO (300)",
        ],
        ATTACHED,
        ATTACHED,
    ),
}
# The same to a table $t without partitions, with a row.
PLAIN: Mapping[str, tuple[list[str], str | None, str | None]] = {
    "times": (["ALTER TABLE $t ALTER v TYPE int USING v * 100"], None, USING),
    "times_widened": (["ALTER TABLE $t ALTER v TYPE bigint USING v * 100"], None, USING),
    "times_then_full": (
        ["ALTER TABLE $t ALTER v TYPE int USING v * 100", "VACUUM FULL $t"],
        None,
        USING,
    ),
    "vacuumed_full": (["VACUUM FULL $t", "ALTER TABLE $t ALTER v SET NOT NULL"], None, None),
    "all_young": (["UPDATE $t SET v = 3", "VACUUM FULL $t"], None, None),
    "clear": (["TRUNCATE $t", "INSERT INTO $t VALUES (5, 5)"], None, None),
    "clear_below": (
        ["BEGIN; SAVEPOINT s; TRUNCATE $t; INSERT INTO $t VALUES (5, 5); COMMIT"],
        None,
        None,
    ),
    "empty": (["DELETE FROM $t", "ALTER TABLE $t ALTER v TYPE int USING v * 100"], None, None),
}


def tables() -> list[str]:
    return [f"public.{name}" for name in (*PARTED, *PLAIN)]


def made(db: SourceDatabase) -> None:
    exists = "SELECT count(*) FROM pg_roles WHERE rolname = 'cdc_other'"
    if not db.value(exists):
        db.sql("CREATE ROLE cdc_other")
    db.sql("GRANT ALL ON SCHEMA public TO cdc_other")
    for name in PARTED:
        db.sql(
            f"CREATE TABLE {name} (id bigserial PRIMARY KEY, v int) PARTITION BY RANGE (id)",
            f"CREATE TABLE {name}_a PARTITION OF {name} FOR VALUES FROM (0) TO (100)",
            f"CREATE TABLE {name}_m PARTITION OF {name} FOR VALUES FROM (100) TO (200)"
            " PARTITION BY RANGE (id)",
            f"CREATE TABLE {name}_mb PARTITION OF {name}_m FOR VALUES FROM (100) TO (200)",
            f"CREATE TABLE {name}_d PARTITION OF {name} DEFAULT",
            f"INSERT INTO {name} VALUES (1, 1), (11, 1), (101, 1), (111, 1)",
        )
    for name in PLAIN:
        db.sql(
            f"CREATE TABLE {name} (id int PRIMARY KEY, v int)", f"INSERT INTO {name} VALUES (1, 1)"
        )


def done(db: SourceDatabase, cases: Mapping[str, Any]) -> None:
    for name, (statements, *_) in cases.items():
        db.sql(*(statement.replace("$t", name) for statement in statements))


class Told:
    """What the looks of a pipeline tell, from its first capture on."""

    def __init__(self, pipeline: PipelineConfig, platform: PlatformConfig) -> None:
        catalog = open_catalog(platform, pipeline)
        self.log = ChangeLog(catalog, pipeline)
        self.facts = SchemaHistory(catalog, pipeline).facts
        self.begin = self.log.head().captured_through

    def __call__(self, name: str) -> list[str]:
        looks = self.facts.all(f"public.{name}")
        return unsent(looks, self.begin, self.log.head().captured_through, SchemaChanges())


@pytest.mark.parametrize("with_trigger", [True, False])
def test_only_rows_that_may_be_others_hold_a_table(
    any_source_db: SourceDatabase, platform: PlatformConfig, with_trigger: bool
) -> None:
    db = any_source_db
    made(db)
    pipeline = db.pipeline(*tables(), ddl_messages="auto" if with_trigger else "off")
    deploy(pipeline, platform)
    db.sql("INSERT INTO all_young VALUES (2, 2)")
    assert run_capture(pipeline, platform).commits == 1
    told = Told(pipeline, platform)
    done(db, PARTED | PLAIN)
    run_capture(pipeline, platform)
    found = {name: told(name) for name in (*PARTED, *PLAIN)}
    wrong = {}
    for name, (_, with_it, without) in (PARTED | PLAIN).items():
        wanted = with_it if with_trigger else without
        others = [line for line in found[name] if "may have given older rows" not in line]
        if len(others) != (wanted is not None) or not all((wanted or "") in o for o in others):
            wrong[name] = (wanted, found[name])
    assert wrong == {}


def parted(db: SourceDatabase, *names: str) -> None:
    for name in names:
        db.sql(
            f"CREATE TABLE {name} (id int PRIMARY KEY) PARTITION BY RANGE (id)",
            f"CREATE TABLE {name}_a PARTITION OF {name} FOR VALUES FROM (0) TO (100)",
            f"CREATE TABLE {name}_b PARTITION OF {name} FOR VALUES FROM (100) TO (200)",
            f"INSERT INTO {name} VALUES (1), (101)",
        )


def test_a_file_that_is_ahead_of_the_log_is_judged_when_the_log_comes_there(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    db, names = source_db, ("cleared", "leaf", "vacuumed", "late")
    parted(db, *names)
    pipeline = db.pipeline(*(f"public.{name}" for name in names), ddl_messages="off")
    deploy(pipeline, platform)
    db.sql("INSERT INTO cleared VALUES (2)")
    run_capture(pipeline, platform)
    told = Told(pipeline, platform)
    db.sql("INSERT INTO cleared VALUES (3)")
    begin = told.begin
    before = boundary(begin.epoch, parse_lsn(db.value("SELECT pg_current_wal_insert_lsn()::text")))
    db.sql(
        "TRUNCATE cleared",
        "TRUNCATE leaf_a",
        "INSERT INTO leaf VALUES (1)",  # younger than the first look, older than the second
        "VACUUM FULL vacuumed_a",
    )
    run_capture(pipeline, platform, until=before)
    assert [told(name) for name in names] == [[]] * 4
    ahead = {name: [leaf.traced for leaf in last.leaves.values()] for name, last in seen(told)}
    assert all(ahead["cleared"]) and ahead["leaf"][0] and not any(ahead["late"])
    run_capture(pipeline, platform)
    assert [len(told(name)) for name in names] == [0, 1, 0, 0]
    assert not any(leaf.traced for _, last in seen(told) for leaf in last.leaves.values())
    # Killed after the look and before the commit: the next run comes to the same answer.
    db.sql("TRUNCATE cleared", "TRUNCATE late_b", "INSERT INTO late VALUES (102)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEGATE_FAULT", "capture.after_look@raise")
        with pytest.raises(faults.Fault):
            run_capture(pipeline, platform)
    run_capture(pipeline, platform)
    assert [len(told(name)) for name in names] == [0, 1, 0, 1]


def seen(told: Told) -> list[tuple[str, TableFacts]]:
    """The newest look at each table."""
    names = ("cleared", "leaf", "vacuumed", "late")
    return [(name, told.facts.all(f"public.{name}")[-1].facts) for name in names]


def test_rows_that_cannot_be_looked_at_are_doubted_and_nobody_waits(
    source_db: SourceDatabase, platform: PlatformConfig
) -> None:
    db = source_db
    names = ("locked", "hidden", "forbidden")
    parted(db, *names)
    role = f"{db.name}_cdc"
    db.sql(
        f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'x'",
        f"GRANT CREATE ON DATABASE {db.name} TO {role}",
        *(f"ALTER TABLE {name} OWNER TO {role}" for name in names),
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
    )
    tables = [f"public.{name}" for name in names]
    pipeline = db.pipeline(*tables, username=role, password="x")
    deploy(pipeline, platform)
    db.sql("INSERT INTO locked VALUES (2)")
    run_capture(pipeline, platform)
    told = Told(pipeline, platform)
    db.sql(
        *(f"VACUUM FULL {name}_a" for name in names),
        "ALTER TABLE hidden_a ENABLE ROW LEVEL SECURITY",
        f"REVOKE SELECT ON forbidden_a FROM {role}",
        "INSERT INTO locked VALUES (102)",
    )
    with db.connect() as other:
        other.execute("BEGIN; LOCK TABLE locked_a IN ACCESS EXCLUSIVE MODE")
        run_capture(pipeline, platform)
        other.execute("ROLLBACK")
    assert [len(told(name)) for name in names] == [1, 1, 1]
    undeploy(pipeline, platform)
    db.sql(f"DROP TABLE {', '.join(names)}; DROP OWNED BY {role}; DROP ROLE {role}")
