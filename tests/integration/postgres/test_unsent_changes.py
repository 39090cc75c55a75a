"""Changes that send no rows: computed where the source tells, held until a sweep otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack import Stack
from tidegate import faults
from tidegate.control import schemas as control
from tidegate.control.schema_approval import Answer, approve
from tidegate.errors import ConfigError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.apply_result import TableResult
from tidegate.jobs.capture import run_capture
from tidegate.jobs.check_schema import run_check_schema
from tidegate.jobs.run import RunOutcome, run_pipeline
from tidegate.lake import positions

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


def flow(stack: Stack) -> dict[str, TableResult]:
    """Capture and apply once."""
    run_capture(stack.pipeline, stack.platform)
    result = run_apply(stack.spark, stack.pipeline, stack.platform, run="flow")
    return {table.table.removeprefix("public."): table for table in result.tables}


def states(results: dict[str, TableResult]) -> dict[str, str]:
    return {name: result.status.value for name, result in results.items()}


def look(stack: Stack) -> dict[str, str]:
    found = run_check_schema(stack.pipeline, stack.platform, run="look")
    return {check.table.removeprefix("public."): check.status for check in found.tables}


def source(stack: Stack, table: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = stack.db.rows(f"SELECT {', '.join(columns)} FROM {table}")
    return sorted(rows, key=repr)


def same(stack: Stack, table: str, *columns: str) -> None:
    assert stack.lake(f"public.{table}", *columns) == source(stack, table, *columns)


def test_rows_older_than_a_column_get_its_default_in_every_mode(
    stack: Callable[..., Stack], fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = {
        "plain": {},
        "soft": {"soft_delete": True},
        "versions": {"write_mode": "history"},
        "events": {"write_mode": "append"},
        "parted": {},
        "quiet": {},
        "ignored": {"schema_changes": {"add": "ignore"}},
        "cleared": {},
    }
    made = stack(
        *(f"public.{name}" for name in modes),
        deployed=False,
        lake={"tables": {f"public.{name}": options for name, options in modes.items()}},
    )
    db = made.db
    for name in modes:
        by = " PARTITION BY RANGE (id)" if name == "parted" else ""
        db.sql(f"CREATE TABLE {name} (id int PRIMARY KEY, v text){by}")
        if by:
            db.sql("CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (4)")
            db.sql("CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (4) TO (99)")
        db.sql(f"INSERT INTO {name} SELECT g, 'row ' || g FROM generate_series(1, 6) g")
    made.deploy()
    made.sweep()
    for name in modes:
        db.sql(
            f"BEGIN; DELETE FROM {name} WHERE id = 6; INSERT INTO {name} VALUES (7, 'before');"
            f" UPDATE {name} SET v = 'before' WHERE id = 5;"
            f" ALTER TABLE {name} ADD w numeric(6,2) DEFAULT 7.5, ADD x text DEFAULT 'it''s, so',"
            " ADD y timestamptz DEFAULT now(), ADD z int;"
            f" INSERT INTO {name} VALUES (8, 'after', 1, NULL, NULL, 8);"
            f" INSERT INTO {name} (id) VALUES (9);"
            f" UPDATE {name} SET w = NULL, v = 'nulled' WHERE id = 1;"
            f" UPDATE {name} SET v = 'kept' WHERE id = 2; COMMIT"
            if name != "quiet"
            else f"ALTER TABLE {name} ADD w int DEFAULT 5"
        )
    db.sql(
        "BEGIN; TRUNCATE cleared; INSERT INTO cleared VALUES (1, 'new');"
        " ALTER TABLE cleared ADD t int DEFAULT 3; UPDATE cleared SET t = 4 WHERE id = 1; COMMIT"
    )
    fault("apply.after_fill")  # killed on the branch: nothing of it is seen
    with pytest.raises(faults.Fault):
        flow(made)
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert not set(states(flow(made)).values()) - {"applied", "unchanged"}

    columns = ("id", "v", "w", "x", "y", "z")
    for name in ("plain", "parted"):
        same(made, name, *columns)
    same(made, "cleared", *columns, "t")
    assert made.lake("public.ignored") == source(made, "ignored", "id", "v")
    alive = made.lake("public.soft", *columns, where="_cdc_deleted = false")
    assert alive == source(made, "soft", *columns)
    current = made.lake("public.versions", *columns, where="_cdc_current = true")
    assert current == source(made, "versions", *columns)
    default = current[-1][2:5]
    ((_, op, *closed),) = made.lake(
        "public.versions", "v", "id", "w", "x", "y", where="id = 2 and _cdc_current = false"
    )
    assert tuple(closed) == default and op == 2
    images = made.lake("public.events", *columns, "_cdc_op")
    (default,) = {row[2:5] for row in source(made, "events", *columns) if row[0] == 3}
    assert {row[2:5] for row in images if row[6] == "r"} == {default}
    assert [row[:5] for row in images if row[6] == "d"] == [(6, None, None, None, None)]
    assert [row[2:6] for row in images if row[0] == 8] == [(1, None, None, 8)]

    # Between runs; the default of then, though it is another one by now, and a rewrite since.
    db.sql("ALTER TABLE quiet ALTER w SET DEFAULT 6")
    assert states(flow(made))["quiet"] == "unchanged"
    db.sql("VACUUM FULL quiet", "INSERT INTO quiet (id) VALUES (10)")
    before = positions.applied(made.table("public.quiet"))
    assert states(flow(made))["quiet"] == "applied"
    same(made, "quiet", "id", "v", "w")
    assert positions.applied(made.table("public.quiet")) > before
    assert set(look(made).values()) <= {"ok", "follows"}


def test_rows_lost_with_a_file_hold_the_table_and_kept_ones_do_not(
    stack: Callable[..., Stack],
) -> None:
    """As a role has it that may not install the event trigger. Which files: test_leaf_rows.py."""
    made = stack(*(f"public.{name}" for name in ("leafy", "times", "full")), deployed=False)
    source_config = made.pipeline.source.model_copy(update={"ddl_messages": "off"})
    made.pipeline = made.pipeline.model_copy(update={"source": source_config})
    db = made.db
    db.sql(
        "CREATE TABLE leafy (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
        "CREATE TABLE leafy_a PARTITION OF leafy FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE leafy_b PARTITION OF leafy FOR VALUES FROM (100) TO (200)",
        "INSERT INTO leafy VALUES (1, 'a'), (101, 'b')",
        'CREATE TABLE "full" (id int PRIMARY KEY, v int)',
        "CREATE TABLE times (id int PRIMARY KEY, v int)",
        "INSERT INTO times SELECT g, g FROM generate_series(1, 3) g",
        'INSERT INTO "full" SELECT g, g FROM generate_series(1, 3) g',
    )
    made.deploy()
    made.sweep()
    assert set(states(flow(made)).values()) <= {"applied", "unchanged"}
    db.sql(
        "TRUNCATE leafy_a",
        "INSERT INTO leafy VALUES (102, 'c')",
        "ALTER TABLE times ALTER v TYPE int USING v * 100",
        'VACUUM FULL "full"',
        'INSERT INTO "full" VALUES (4, 4)',
    )
    assert states(flow(made)) == {"leafy": "held", "times": "held", "full": "applied"}
    assert "partition public.leafy_a was emptied" in (made.state("public.leafy").reason or "")
    assert "whether USING" in (made.state("public.times").reason or "")
    assert not made.sweep("public.leafy", "public.times").failed
    same(made, "leafy", "id", "v")
    same(made, "times", "id", "v")
    # Between the cut of that sweep and the first look after it, with no row to tell of anything.
    db.sql("TRUNCATE leafy_b")
    assert states(flow(made))["leafy"] == "held"
    made.swept("public.leafy")
    db.sql("INSERT INTO leafy VALUES (1, 'a')")
    assert states(flow(made))["leafy"] == "applied"
    db.sql("TRUNCATE leafy", "INSERT INTO leafy VALUES (2, 'b')")  # the whole of it is sent
    assert states(flow(made))["leafy"] == "applied"
    same(made, "leafy", "id", "v")


def test_a_new_key_or_crossed_names_are_approved_and_the_sweep_writes_every_row_anew(
    stack: Callable[..., Stack],
) -> None:
    names = ("swapped", "shrunk", "crossed", "fine")
    made = stack(*(f"public.{name}" for name in names), deployed=False)
    made.pipeline = made.pipeline.model_copy(update={"stop_on_incompatible_schema": True})
    db = made.db
    db.sql(
        "CREATE TABLE swapped (id int PRIMARY KEY, code text)",
        "CREATE TABLE shrunk (a int, b int, v text, PRIMARY KEY (a, b))",
        "CREATE TABLE crossed (id int PRIMARY KEY, a int, b int, c int)",
        "INSERT INTO crossed SELECT g, g, 10 * g, 100 * g FROM generate_series(1, 3) g",
        "CREATE TABLE fine (id int PRIMARY KEY)",
        "INSERT INTO swapped SELECT g, 'c' || g FROM generate_series(1, 3) g",
        "INSERT INTO shrunk SELECT g, g, 'r' || g FROM generate_series(1, 3) g",
    )
    made.deploy()
    made.sweep()
    db.sql(
        "ALTER TABLE swapped DROP CONSTRAINT swapped_pkey, ALTER id DROP NOT NULL,"
        " ADD PRIMARY KEY (code)",
        "UPDATE swapped SET id = NULL WHERE code = 'c1'",
        "ALTER TABLE shrunk DROP CONSTRAINT shrunk_pkey, ADD PRIMARY KEY (a)",
        "UPDATE shrunk SET v = 'new' WHERE a = 1",
        "BEGIN; ALTER TABLE crossed RENAME a TO x; ALTER TABLE crossed RENAME b TO a;"
        " ALTER TABLE crossed RENAME x TO b; COMMIT",
        "UPDATE crossed SET a = 7 WHERE id = 1",
    )
    assert states(flow(made))["swapped"] == "held"
    waiting = {entry.table: entry for entry in control.held(made.pipeline, made.platform)}
    assert waiting["public.swapped"].approvable and waiting["public.swapped"].sweep
    swap = {"a": "b", "b": "a"}
    with pytest.raises(ConfigError, match="no lake column that left"):
        wrong = Answer({"a": "b", "b": "c"})
        approve(made.pipeline, made.platform, "crossed", wrong, actor="a person")
    for name, answer in (
        ("swapped", Answer()),
        ("shrunk", Answer()),
        ("crossed", Answer()),
        ("crossed", Answer(swap)),
    ):
        done = approve(made.pipeline, made.platform, name, answer, actor="a person")
        assert done.sweep and f"public.{name}" not in done.opened
        assert "approved" in (made.state(f"public.{name}").reason or "")
    assert made.state("public.fine").state == "open"  # it waited with the others only

    # Opened by hand, without the sweep: the lake's rows cannot be told apart by the new key.
    made.gate.open(["public.swapped", "public.crossed"], "in a hurry", "a person")
    opened = states(flow(made))
    assert (opened["swapped"], opened["crossed"]) == ("held", "held")
    assert not made.sweep("public.swapped", "public.shrunk", "public.crossed").failed
    same(made, "crossed", "id", "a", "b", "c")
    assert made.table("public.swapped").schema().identifier_field_names() == set()
    assert made.table("public.shrunk").schema().identifier_field_names() == {"a"}
    db.sql(
        "UPDATE swapped SET id = 20 WHERE code = 'c2'",
        "DELETE FROM swapped WHERE code = 'c3'",
        "INSERT INTO swapped VALUES (20, 'c4')",
        "INSERT INTO shrunk VALUES (4, 1, 'r4')",
        "INSERT INTO crossed VALUES (4, 40, 4, 400)",
        "UPDATE crossed SET b = 8 WHERE id = 2",
    )
    applied = dict.fromkeys(("swapped", "shrunk", "crossed"), "applied")
    assert states(flow(made)) == {**applied, "fine": "unchanged"}
    same(made, "crossed", "id", "a", "b", "c")
    same(made, "swapped", "id", "code")
    same(made, "shrunk", "a", "b", "v")
    # The lake names no key of its own any more; another change is noticed all the same.
    db.sql(
        "UPDATE swapped SET id = 1 WHERE id IS NULL",
        "UPDATE swapped SET id = 40 WHERE code = 'c4'",
        "ALTER TABLE swapped DROP CONSTRAINT swapped_pkey, ADD PRIMARY KEY (id)",
        "DELETE FROM swapped WHERE id = 1",
    )
    assert states(flow(made))["swapped"] == "held"
    assert approve(made.pipeline, made.platform, "swapped", Answer(), actor="a person").sweep
    made.swept("public.swapped")
    same(made, "swapped", "id", "code")


def test_tables_that_change_between_a_sweep_that_died_and_the_one_that_goes_on(
    stack: Callable[..., Stack], fault: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a sweep is at work: test_ddl_matrix.py."""
    tables = ("added", "labelled", "attached")
    made = stack(*(f"public.{name}" for name in tables), deployed=False)
    db = made.db
    db.sql("CREATE TYPE mood AS ENUM ('good', 'sad')")
    for name in tables:
        kind, value = ("mood", "'sad'") if name == "labelled" else ("text", "'row ' || g")
        by = " PARTITION BY RANGE (id)" if name == "attached" else ""
        db.sql(f"CREATE TABLE {name} (id int PRIMARY KEY, v {kind}, u int){by}")
        if by:
            db.sql(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (5000)")
            db.sql(f"CREATE TABLE {name}_2 PARTITION OF {name} FOR VALUES FROM (5000) TO (9000)")
            db.sql(f"INSERT INTO {name} VALUES (6000, 'there', 1)")
        db.sql(f"INSERT INTO {name} SELECT g, {value}, g FROM generate_series(1, 2500) g")
    made.deploy()
    made.sweep()
    for name in tables:
        fault("sweep.after_chunk")
        with pytest.raises(faults.Fault):
            made.sweep(f"public.{name}", run=f"dies_{name}")
    monkeypatch.delenv("TIDEGATE_FAULT")
    db.sql(
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'low'",
        "ALTER TABLE added ADD x text DEFAULT 'new'",
        "ALTER TABLE attached DETACH PARTITION attached_2",
    )
    assert not made.sweep(run="goes_on").failed
    same(made, "added", "id", "v", "u", "x")
    same(made, "labelled", "id", "v", "u")
    same(made, "attached", "id", "v", "u")
    db.sql(*(f"UPDATE {name} SET id = 4000 WHERE id = 2500" for name in tables))
    assert set(states(flow(made)).values()) == {"applied"}
    same(made, "added", "id", "v", "u", "x")


def test_a_table_that_joins_late_or_again_is_never_taken_for_whole(
    stack: Callable[..., Stack], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lost its key, was taken out of the publication, got its key back, and rows were written
    while nobody captured: no capture looked in between."""
    made = stack("public.kept", "public.lost", deployed=False)
    made.db.sql(
        "CREATE TABLE kept (id int PRIMARY KEY, v text)",
        "CREATE TABLE lost (id int, v text)",
        "INSERT INTO kept VALUES (1, 'a')",
        "INSERT INTO lost VALUES (1, 'a')",
    )
    stop = threading.Event()

    def run() -> RunOutcome:
        return run_pipeline(made.spark, made.pipeline, made.platform, interval=None, stop=stop)

    first = run()
    assert (first.swept, [held.table for held in first.not_ready]) == (
        ["public.kept"],
        ["public.lost"],
    )
    assert {t.table: str(t.status) for t in first.tables}["public.lost"] == "held"
    made.db.sql("ALTER TABLE lost ADD PRIMARY KEY (id)")
    second = run()
    assert second.swept == ["public.lost"], "it joined, and got its first sweep"
    same(made, "lost", "id", "v")

    made.db.sql(
        "ALTER TABLE lost DROP CONSTRAINT lost_pkey", "ALTER TABLE lost ALTER id DROP NOT NULL"
    )
    made.deploy()
    made.db.sql(
        "INSERT INTO lost VALUES (2, 'unseen')",
        "UPDATE lost SET v = 'changed' WHERE id = 1",  # the source is free again (I11)
        "INSERT INTO kept VALUES (2, 'b')",
        "ALTER TABLE lost ADD PRIMARY KEY (id)",
    )
    made.deploy()
    gate = made.state("public.lost")
    assert "changes made meanwhile were not captured" in str(gate.reason)
    made.gate.open(["public.lost"], "it looks well", "ann")  # whoever opens it is wrong
    assert states(flow(made)) == {"kept": "applied", "lost": "held"}
    assert made.lake("public.lost", "id", "v") == [(1, "a")], "nothing half-right"
    same(made, "kept", "id", "v")
    made.swept("public.lost")
    assert states(flow(made))["lost"] == "unchanged"
    same(made, "lost", "id", "v")


def test_one_table_that_cannot_be_read_does_not_end_the_sweep_of_the_others(
    stack: Callable[..., Stack],
) -> None:
    made = stack("public.kept", "public.gone", deployed=False)
    made.db.sql(
        "CREATE TABLE kept (id int PRIMARY KEY)",
        "CREATE TABLE gone (id int PRIMARY KEY)",
        "INSERT INTO kept VALUES (1)",
    )
    made.deploy()
    made.db.sql("DROP TABLE gone")
    swept = {table.table: table for table in made.sweep().tables}
    assert swept["public.kept"].status == "swept"
    error = swept["public.gone"].error
    assert error is not None and "does not exist" in error.message
    assert "does not exist" in str(made.state("public.gone").reason)
    same(made, "kept", "id")
