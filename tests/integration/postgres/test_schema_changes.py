"""Schema changes of a real PostgreSQL: followed, held, approved, exactly from their position."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli import Shell, configured
from tests.support.log_events import Ear
from tests.support.stack import Stack
from tidegate import faults
from tidegate.control import schemas as control
from tidegate.control.schema_approval import Answer, Approved, approve
from tidegate.errors import ConfigError
from tidegate.jobs.apply import run_apply
from tidegate.jobs.apply_result import TableResult
from tidegate.jobs.capture import run_capture
from tidegate.jobs.check_schema import run_check_schema
from tidegate.jobs.compared_columns import IGNORED
from tidegate.jobs.verify import run_verify
from tidegate.lake.schema_hold import HOLD_MARK, stop_reason
from tidegate.observability import events

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


def flow(stack: Stack) -> dict[str, TableResult]:
    """Capture and apply once."""
    run_capture(stack.pipeline, stack.platform)
    result = run_apply(stack.spark, stack.pipeline, stack.platform, run="flow")
    return {table.table.removeprefix("public."): table for table in result.tables}


def states(results: dict[str, TableResult]) -> dict[str, str]:
    return {name: result.status.value for name, result in results.items()}


def field_ids(stack: Stack, table: str) -> dict[str, int]:
    return {field.name: field.field_id for field in stack.table(table).schema().fields}


def let(stack: Stack, table: str, **answer: Any) -> Approved:
    return approve(
        stack.pipeline, stack.platform, f"public.{table}", Answer(**answer), actor="a person"
    )


def waiting(stack: Stack) -> dict[str, control.HeldSchema]:
    found = control.held(stack.pipeline, stack.platform)
    return {entry.table.removeprefix("public."): entry for entry in found}


def test_changes_the_lake_follows_and_what_readers_see(stack: Callable[..., Stack]) -> None:
    """Renames (in the middle, behind a hole, there and back) with rows before and after in one
    transaction, many changes at once. Each kind by itself: test_ddl_matrix.py."""
    tables = ("middle", "tail", "back", "many")
    made = stack(*(f"public.{name}" for name in tables), deployed=False)
    db = made.db
    db.sql(
        "CREATE TABLE middle (id int PRIMARY KEY, a int, c text)",
        "CREATE TABLE tail (id int PRIMARY KEY, old int, a text)",
        "ALTER TABLE tail DROP COLUMN old",  # numbers have a hole
        "CREATE TABLE back (id int PRIMARY KEY, a int)",
        "CREATE TABLE many (id int PRIMARY KEY, n int, v text)",
        "INSERT INTO middle VALUES (1, 10, 'one'), (2, 20, 'two')",
        "INSERT INTO tail VALUES (1, 'one')",
        "INSERT INTO back VALUES (1, 10)",
        "INSERT INTO many SELECT 1, 1, string_agg(md5(i::text), '') FROM generate_series(1, 300) i",
        "INSERT INTO many VALUES (2, 2, 'short')",
    )
    made.deploy()
    made.sweep()
    before = {name: field_ids(made, f"public.{name}") for name in tables}
    db.sql(
        "BEGIN; INSERT INTO middle VALUES (3, 30, 'three'); ALTER TABLE middle RENAME a TO b;"
        " INSERT INTO middle VALUES (4, 40, 'four'); UPDATE middle SET b = 11 WHERE id = 1; COMMIT",
        "BEGIN; INSERT INTO tail VALUES (2, 'two'); ALTER TABLE tail RENAME a TO b;"
        " INSERT INTO tail VALUES (3, 'three'); COMMIT",
        "BEGIN; ALTER TABLE back RENAME a TO b; INSERT INTO back VALUES (2, 20);"
        " ALTER TABLE back RENAME b TO a; INSERT INTO back VALUES (3, 30); COMMIT",
        # The long value is not sent again: it is found in the lake under the column's new name.
        "BEGIN; UPDATE many SET n = 5 WHERE id = 1; ALTER TABLE many RENAME v TO w;"
        " ALTER TABLE many ADD COLUMN x int, ALTER n TYPE bigint;"
        " UPDATE many SET n = 5000000000, x = 1 WHERE id = 1; COMMIT",
    )
    assert set(states(flow(made)).values()) == {"applied"}

    assert made.lake("public.middle", "id", "b", "c") == [
        (1, 11, "one"), (2, 20, "two"), (3, 30, "three"), (4, 40, "four"),
    ]  # fmt: skip
    assert field_ids(made, "public.middle")["b"] == before["middle"]["a"]
    assert made.lake("public.tail", "id", "b") == [(1, "one"), (2, "two"), (3, "three")]
    assert field_ids(made, "public.tail")["b"] == before["tail"]["a"]
    assert made.lake("public.back", "id", "a") == [(1, 10), (2, 20), (3, 30)]
    assert field_ids(made, "public.back") == before["back"]
    assert made.lake("public.many", "id", "n", "w", "x") == db.rows(
        "SELECT id, n, w, x FROM many ORDER BY id"
    )

    # Between runs, and a schema that the log has not used yet.
    db.sql("ALTER TABLE middle RENAME c TO d")
    db.sql("INSERT INTO middle VALUES (5, 50, 'five')")
    assert states(flow(made))["middle"] == "applied"
    assert made.lake("public.middle", "id", "d")[-1] == (5, "five")
    assert field_ids(made, "public.middle")["d"] == before["middle"]["c"]
    db.sql("ALTER TABLE tail RENAME b TO e")  # a sweep sees it first
    made.swept("public.tail")
    assert field_ids(made, "public.tail")["e"] == before["tail"]["a"]
    db.sql("INSERT INTO tail VALUES (4, 'four')")
    assert states(flow(made))["tail"] == "applied"
    assert len(made.lake("public.tail", "id", "e")) == 4

    listed = control.schemas(made.pipeline, made.platform, ["public.middle"])
    assert [row.kinds for row in listed] == [(), ("rename",), ("rename",)]
    assert listed[1].changes == ("a is called b now",)
    assert [row.current for row in listed] == [False, False, True]
    first = control.schema(made.pipeline, made.platform, "middle", listed[0].first_used)
    assert [column.name for column in first.columns] == ["id", "a", "c"]
    newest = control.schema(made.pipeline, made.platform, "middle")
    assert [(c.name, c.number) for c in newest.columns] == [("id", 1), ("b", 2), ("d", 3)]


def approve_on_the_command_line(
    made: Stack, tables: tuple[str, ...], folder: Path, shell: Shell
) -> None:
    """The same actions as a person has them."""
    cli = configured(folder, made.db, *(f"public.{name}" for name in tables), shell=shell)
    home = {"lake": {"home": made.platform.lake.home}}
    (folder / "platform.yaml").write_text(yaml.safe_dump(home), encoding="utf-8")
    (entry,) = cli.result("schema", "--held", "--table", "public.narrow")["held"]
    assert entry["sides"] == [{"column": "v", "lake": "long", "source": "integer as int"}]
    for words in (("gate", "show"), ("status", "--offline"), ("schema", "--held")):
        shown = cli.run(*words)
        assert shown.returncode == 0 and "source now" in shown.stdout, shown
    listed = cli.result("schemas", "--table", "public.narrow")["schemas"]
    assert [row["kinds"] for row in listed] == [[], ["narrow"]]
    newest = cli.result("schema", "--table", "public.narrow")
    assert newest["columns"][1]["lake_type"] == "int"
    older = cli.result("schema", "--table", "public.narrow", "--at", listed[0]["first_used"])
    assert older["columns"][1]["lake_type"] == "long"
    words = ("schema", "approve", "--table", "public.narrow")
    assert cli.result(*words, "--dry-run")["opened"] == []
    assert cli.result(*words, "--cast", "v", code=2)["code"] == "schema.wrong_answer"
    assert cli.result(*words)["opened"] == ["public.narrow"]
    assert cli.result(*words, code=2)["code"] == "schema.nothing_held"


def test_what_is_held_is_approved_and_flows_from_its_position(
    stack: Callable[..., Stack],
    fault: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    shell: Shell,
) -> None:
    tables = ("retyped", "casted", "narrow", "guess", "fine")
    made = stack(*(f"public.{name}" for name in tables), deployed=False)
    # With the event trigger nothing about a rename is uncertain: test_ddl_messages.py.
    quiet = made.pipeline.source.model_copy(update={"ddl_messages": "off"})
    made.pipeline = made.pipeline.model_copy(update={"source": quiet})
    db = made.db
    for name in tables:
        kind = "bigint" if name == "narrow" else "int"
        db.sql(
            f"CREATE TABLE {name} (id int PRIMARY KEY, v {kind})",
            f"INSERT INTO {name} VALUES (1, 10), (2, 20)",
        )
    db.sql("ALTER TABLE guess ADD COLUMN x int, ADD COLUMN y int", "ALTER TABLE guess DROP x")
    made.deploy()
    made.sweep()
    db.sql(
        "BEGIN; INSERT INTO retyped VALUES (3, 30); ALTER TABLE retyped ALTER v TYPE text;"
        " INSERT INTO retyped VALUES (4, 'four'); UPDATE retyped SET v = 'one' WHERE id = 1;"
        " COMMIT",
        "ALTER TABLE casted ALTER v TYPE text; INSERT INTO casted VALUES (3, '30')",
        "ALTER TABLE narrow ALTER v TYPE int; INSERT INTO narrow VALUES (3, 30)",
        # Captured after the column was renamed once more: its number is not certain any more.
        "ALTER TABLE guess RENAME y TO z; INSERT INTO guess VALUES (3, 30, 300)",
        "ALTER TABLE guess RENAME z TO w; INSERT INTO guess VALUES (4, 40, 400)",
        "INSERT INTO fine VALUES (3, 30)",
    )
    assert states(flow(made)) == dict.fromkeys(tables, "held") | {"fine": "applied"}
    assert made.lake("public.fine")[-1] == (3, 30)
    assert made.lake("public.retyped") == [(1, 10), (2, 20)]  # nothing of the batch was applied

    reason = made.state("public.retyped").reason or ""
    assert reason.startswith(HOLD_MARK)
    assert "v      | int  | text as string" in reason
    found = waiting(made)
    assert set(found) == set(tables) - {"fine"}
    assert found["guess"].reasons == ("y left and z came: renamed, or dropped and added?",)
    assert found["narrow"].reasons == ("v is narrower: bigint as long → integer as int",)

    for wrong in ({"renames": {"v": "nope"}}, {"casts": {"v": "money"}}, {"casts": {"q": "int"}}):
        with pytest.raises(ConfigError) as caught:
            let(made, "retyped", **wrong)
        assert caught.value.code == "schema.wrong_answer"
    with pytest.raises(ConfigError) as caught:
        let(made, "casted", casts={"v": "boolean"})
    assert caught.value.code == "schema.cannot_approve"
    with pytest.raises(ConfigError) as caught:
        let(made, "fine")
    assert caught.value.code == "schema.nothing_held"

    fault("schema.after_approval")
    with pytest.raises(faults.Fault):
        let(made, "retyped")
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert made.state("public.retyped").state == "held"
    assert let(made, "retyped").opened == ("public.retyped",)  # the approval was durable
    assert let(made, "casted", casts={"v": "int"}).statements == ()
    approve_on_the_command_line(made, tables, tmp_path, shell)
    named = let(made, "guess", renames={"y": "z"})
    assert named.next_held is not None  # z → w is as uncertain as y → z
    # Killed after the old column was set aside, before the new one was added.
    fault("apply.after_evolve")
    with pytest.raises(faults.Fault):
        flow(made)
    monkeypatch.delenv("TIDEGATE_FAULT")
    again = states(flow(made))
    # Tables beside the one that died may have come through before.
    through = {again[name] for name in ("retyped", "casted", "narrow")}
    assert through <= {"applied", "unchanged"} and "applied" in through
    assert again["guess"] == "held"

    (aside,) = [name for name in field_ids(made, "public.retyped") if "__until_" in name]
    assert made.lake("public.retyped", "id", aside, "v") == [
        (1, None, "one"), (2, 20, None), (3, 30, None), (4, None, "four"),
    ]  # fmt: skip
    assert made.lake("public.casted") == [(1, 10), (2, 20), (3, 30)]
    assert made.lake("public.narrow") == [(1, 10), (2, 20), (3, 30)]

    let(made, "guess", renames={"y": "w"})
    assert states(flow(made))["guess"] == "applied"
    assert made.lake("public.guess", "id", "v", "w")[2:] == [(3, 30, 300), (4, 40, 400)]
    assert not waiting(made)

    # A second change after an approval needs one of its own; the cast is of the first.
    db.sql(
        "ALTER TABLE retyped ALTER v TYPE boolean USING false;"
        " INSERT INTO retyped VALUES (5, true)",
        "INSERT INTO casted VALUES (4, '40')",
    )
    later = states(flow(made))
    assert (later["retyped"], later["casted"]) == ("held", "applied")
    assert made.lake("public.casted")[-1] == (4, 40)


def test_policies_per_table_and_a_pipeline_that_stops(
    stack: Callable[..., Stack], said: Ear
) -> None:
    made = stack(
        "public.ignored",
        "public.strict",
        "public.free",
        deployed=False,
        lake={
            "tables": {
                "public.ignored": {"schema_changes": {"add": "ignore", "retype": "ignore"}},
                "public.strict": {"compatibility": "FULL"},
                "public.free": {"schema_changes": {"retype": "evolve"}},
            }
        },
    )
    made.platform = made.platform.model_copy(update={"stop_on_incompatible_schema": True})
    db = made.db
    for name in ("ignored", "strict", "free"):
        db.sql(
            f"CREATE TABLE {name} (id int PRIMARY KEY, v int NOT NULL)",
            f"INSERT INTO {name} VALUES (1, 10)",
        )
    made.deploy()
    made.sweep()
    db.sql(
        "ALTER TABLE ignored ADD w int, ALTER v TYPE text; INSERT INTO ignored VALUES (2, 'b', 5)",
        "ALTER TABLE free ALTER v TYPE text; INSERT INTO free VALUES (2, 'b')",
    )
    assert set(states(flow(made)).values()) == {"applied", "unchanged"}
    assert made.lake("public.ignored") == [(1, 10), (2, None)]
    assert made.lake("public.free", "id", "v") == [(1, None), (2, "b")]
    swept = made.swept("public.ignored")  # the sweep leaves the same columns out
    assert swept.rows == 2
    assert made.lake("public.ignored") == [(1, None), (2, None)]
    (compared,) = run_verify(
        made.spark, made.pipeline, made.platform, tables=["public.ignored"]
    ).tables
    assert (compared.status, compared.error) == ("equal", None)
    assert compared.not_compared == dict.fromkeys(("v", "w"), IGNORED)

    db.sql("ALTER TABLE strict DROP COLUMN v; INSERT INTO strict VALUES (2)")
    result = flow(made)
    assert states(result)["strict"] == "held"
    assert "not FULL: readers by the old schema need v" in (result["strict"].reason or "")
    assert made.state("public.free").reason == stop_reason("public.strict")
    assert made.state("public.ignored").state == "held"
    with pytest.raises(Exception, match="not FULL"):
        raise made.sweep("public.strict").tables[0].error or AssertionError  # a sweep asks as well
    told = [(one.fields["table"], one.level) for one in said.of(events.SCHEMA_INCOMPATIBLE)]
    assert told == [("public.strict", logging.ERROR)] * 2, "the apply, then the sweep"
    assert let(made, "strict").opened == ("public.ignored", "public.strict", "public.free")
    assert set(states(flow(made)).values()) == {"applied", "unchanged"}
    assert made.lake("public.strict") == [(1, 10), (2, None)]


def test_a_look_at_the_live_source_tells_what_will_come_and_what_never_was_sent(
    stack: Callable[..., Stack],
) -> None:
    plain = ("same", "added", "filled", "wider", "retyped", "gone", "moved", "anew")
    tables = (*plain, "labelled", "parted")
    made = stack(*(f"public.{name}" for name in tables), deployed=False)
    db = made.db
    db.sql("CREATE TYPE mood AS ENUM ('good', 'bad')")
    for name in plain:
        db.sql(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)")
    db.sql(
        "CREATE TABLE labelled (id int PRIMARY KEY, v mood)",
        "CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
        "CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20)",
    )
    made.deploy()

    def look(run: str) -> dict[str, tuple[str, str]]:
        found = run_check_schema(made.pipeline, made.platform, run=run)
        return {c.table.removeprefix("public."): (c.status, c.reason) for c in found.tables}

    assert {status for status, _ in look("before").values()} == {"unswept"}
    made.sweep()
    assert {status for status, _ in look("first").values()} == {"ok"}
    db.sql(
        "ALTER TABLE added ADD COLUMN w int",
        "ALTER TABLE filled ADD COLUMN w int DEFAULT 7, ADD COLUMN x timestamptz DEFAULT now()",
        "ALTER TABLE retyped ALTER v TYPE text",
        "DROP TABLE gone",
        "ALTER TABLE moved RENAME TO elsewhere",
        "DROP TABLE anew",
        "CREATE TABLE anew (id int PRIMARY KEY, v int)",
        "ALTER TYPE mood RENAME VALUE 'bad' TO 'sad'",
        "ALTER TABLE parted DETACH PARTITION parted_2",
        "CREATE TABLE parted_3 (id int PRIMARY KEY, v int)",
        "INSERT INTO parted_3 VALUES (21, 1)",
        "CREATE TABLE parted_4 (id int PRIMARY KEY, v int)",
        "ALTER TABLE parted ATTACH PARTITION parted_4 FOR VALUES FROM (30) TO (40)",
        "ALTER TABLE wider ALTER v TYPE bigint",
        "ALTER TABLE parted ATTACH PARTITION parted_3 FOR VALUES FROM (20) TO (30)",
    )
    said = look("second")
    assert {name: status for name, (status, _) in said.items()} == {
        "same": "ok",
        "added": "follows",
        "filled": "follows",
        "retyped": "incompatible",
        "gone": "gone",
        "moved": "gone",
        "anew": "incompatible",
        "wider": "follows",
        "labelled": "needs_sweep",
        "parted": "needs_sweep",
    }
    for name, words in {
        "added": "w was added: integer as int",
        "filled": "w was added: integer as int",
        "retyped": "v has another type: integer as int → text as string",
        "gone": "it was dropped",
        "moved": "it is called public.elsewhere now",
        "anew": "made anew",
        "labelled": "mood.bad is called mood.sad now",
        "parted": "partition public.parted_2 is gone",
    }.items():
        assert words in said[name][1], said[name]
    assert "partition public.parted_3 was attached" in said["parted"][1]
    assert "parted_4" not in said["parted"][1]  # attached without rows
    assert look("third")["labelled"] == said["labelled"]  # it does not forget

    made.sweep("public.filled", "public.labelled", "public.parted")
    after = look("fourth")
    assert [after[name][0] for name in ("filled", "labelled", "parted")] == ["ok", "ok", "ok"]
