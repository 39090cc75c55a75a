"""Deploy is idempotent, survives being killed, and undeploy removes exactly what it made."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from tests.support.postgres import SourceDatabase
from tidegate import faults
from tidegate.config.platform import PlatformConfig, TransportMode
from tidegate.config.schema_changes import SchemaChanges
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, FatalError, HeldError
from tidegate.jobs import run
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy, undeploy
from tidegate.lake import commits
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.facts_ledger import FactsLedger
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.unsent import unsent
from tidegate.names import POSITION_PROPERTY
from tidegate.observability.progress import silent
from tidegate.testing.postgres_server import PASSWORD

pytestmark = pytest.mark.postgres

WEBHOOK = [{"sink_id": "hook", "sink_type": "webhook", "webhook": {"url": "http://localhost/x"}}]


@pytest.fixture
def db(any_source_db: SourceDatabase) -> SourceDatabase:
    any_source_db.sql(
        "CREATE TABLE items (id int PRIMARY KEY)", "CREATE TABLE more (id int PRIMARY KEY)"
    )
    return any_source_db


def published(db: SourceDatabase) -> list[str]:
    query = "SELECT tablename::text FROM pg_publication_tables ORDER BY 1"
    return [row[0] for row in db.rows(query)]


def slots(db: SourceDatabase) -> list[str]:
    query = f"SELECT slot_name::text FROM pg_replication_slots WHERE database = '{db.name}'"
    return [row[0] for row in db.rows(query)]


def test_second_deploy_changes_nothing(db: SourceDatabase, platform: PlatformConfig) -> None:
    pipeline = db.pipeline("public.items", slot_name=f"own_{db.name}")
    first = deploy(pipeline, platform)
    second = deploy(pipeline, platform)
    assert (first.status, second.status) == ("deployed", "unchanged")
    assert second.start == first.start
    assert published(db) == ["items"]
    assert slots(db) == [f"own_{db.name}"]


def test_failover_slot_where_the_server_has_them(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    deploy(db.pipeline("public.items"), platform)
    if db.server.version >= 17:
        assert db.value(f"SELECT failover FROM pg_replication_slots WHERE database = '{db.name}'")


def test_dry_run_changes_nothing(db: SourceDatabase, platform: PlatformConfig) -> None:
    result = deploy(db.pipeline("public.items"), platform, dry_run=True)
    assert result.status == "planned"
    assert len(result.actions) == 4
    assert not published(db)
    assert not slots(db)


def test_tables_follow_the_file(db: SourceDatabase, platform: PlatformConfig) -> None:
    deploy(db.pipeline("public.items"), platform)
    deploy(db.pipeline("public.items", "public.more"), platform)
    assert published(db) == ["items", "more"]
    deploy(db.pipeline("public.more"), platform)
    assert published(db) == ["more"]


def test_undeploy_removes_everything_it_made(db: SourceDatabase, platform: PlatformConfig) -> None:
    pipeline = db.pipeline("public.items")
    deploy(pipeline, platform)
    planned = undeploy(pipeline, platform, dry_run=True)
    assert slots(db)
    assert undeploy(pipeline, platform).actions == planned.actions
    assert not published(db)
    assert not slots(db)
    catalog = open_catalog(platform, pipeline)
    assert catalog.list_tables(pipeline.control_namespace) == [
        (pipeline.control_namespace, "audit_trail")  # who removed it
    ]
    assert undeploy(pipeline, platform).actions == ()
    assert deploy(pipeline, platform).status == "deployed"
    told = [(e.action, e.outcome) for e in AuditTrail(catalog, pipeline).entries()]
    assert told == [("deploy", "done"), ("undeploy", "done"), ("deploy", "done")]
    undeploy(pipeline, platform, purge=True)
    assert open_catalog(platform, pipeline).list_namespaces() == []  # nothing of ours is left


def test_killed_undeploy_is_finished_by_the_next(
    db: SourceDatabase, platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = db.pipeline("public.items")
    deploy(pipeline, platform)
    monkeypatch.setattr(faults, "_hits", {})
    monkeypatch.setenv("TIDEGATE_FAULT", "undeploy.after_source@raise")
    with pytest.raises(faults.Fault):
        undeploy(pipeline, platform)
    monkeypatch.delenv("TIDEGATE_FAULT")
    assert not slots(db)
    assert undeploy(pipeline, platform).status == "removed"
    trail = AuditTrail(open_catalog(platform, pipeline), pipeline)
    told = [(entry.action, entry.outcome) for entry in trail.entries()]
    assert told == [("undeploy", "done"), ("undeploy", "begun"), ("deploy", "done")]
    assert deploy(pipeline, platform).status == "deployed"


def test_undeploy_is_refused_under_a_sweep(db: SourceDatabase, platform: PlatformConfig) -> None:
    pipeline = db.pipeline("public.items")
    deploy(pipeline, platform)
    gate = Gate(open_catalog(platform, pipeline), pipeline, platform.gate)
    gate.begin_sweep("r1", ["public.items"], "test")
    with pytest.raises(HeldError) as caught:
        undeploy(pipeline, platform)
    assert caught.value.code == "gate.sweeping"
    assert slots(db)
    gate.abandon("r1", "test", "given up")
    assert undeploy(pipeline, platform).status == "removed"


def test_a_table_taken_out_of_the_file_is_not_held_any_more(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    both = db.pipeline("public.items", "public.more")
    deploy(both, platform)
    Gate(open_catalog(platform, both), both, platform.gate).hold(["public.more"], "a look", "me")
    result = deploy(db.pipeline("public.items"), platform)
    assert "gate of public.more cleared: it left the pipeline" in result.actions


def test_publication_of_the_user_is_used_and_never_dropped(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    db.sql("CREATE PUBLICATION mine FOR TABLE items, more")
    pipeline = db.pipeline("public.items", publication_name="mine")
    deploy(pipeline, platform)
    db.sql("INSERT INTO items VALUES (1)", "INSERT INTO more VALUES (1)")
    assert run_capture(pipeline, platform).rows == 1
    undeploy(pipeline, platform)
    assert published(db) == ["items", "more"]
    assert not slots(db)


def test_publication_of_another_deployment_is_not_taken_over(
    db: SourceDatabase, platform: PlatformConfig, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = PlatformConfig.model_validate(
        {"lake": {"home": str(tmp_path_factory.mktemp("elsewhere"))}}
    )
    deploy(db.pipeline("public.items"), platform)
    with pytest.raises(ConfigError) as caught:
        deploy(db.pipeline("public.items", "public.more"), elsewhere)
    assert caught.value.code == "deploy.publication_foreign"
    with pytest.raises(ConfigError) as caught:
        deploy(db.pipeline("public.items"), elsewhere)
    assert caught.value.code == "deploy.slot_exists"
    undeploy(db.pipeline("public.items"), elsewhere)
    assert published(db) == ["items"]
    assert slots(db)


@pytest.mark.parametrize("fault", ["deploy.after_publication", "deploy.after_slot"])
def test_killed_deploy_is_finished_by_the_next(
    db: SourceDatabase, platform: PlatformConfig, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = db.pipeline("public.items")
    monkeypatch.setattr(faults, "_hits", {})
    monkeypatch.setenv("TIDEGATE_FAULT", f"{fault}@raise")
    with pytest.raises(faults.Fault):
        deploy(pipeline, platform)
    monkeypatch.delenv("TIDEGATE_FAULT")
    db.sql("INSERT INTO items VALUES (1)")
    deploy(pipeline, platform)
    trail = AuditTrail(open_catalog(platform, pipeline), pipeline)
    assert [entry.outcome for entry in trail.entries()] == ["done", "begun"]
    db.sql("INSERT INTO items VALUES (2)")
    captured = run_capture(pipeline, platform).rows
    # With the slot made before the kill, what happened since then is in the log as well.
    assert captured == (2 if fault == "deploy.after_slot" else 1)
    undeploy(pipeline, platform)
    assert not published(db)
    assert not slots(db)


def test_lost_slot_needs_a_new_epoch(db: SourceDatabase, platform: PlatformConfig) -> None:
    pipeline = db.pipeline("public.items")
    first = deploy(pipeline, platform)
    db.sql(f"SELECT pg_drop_replication_slot('{pipeline.slot_name}')")
    with pytest.raises(FatalError) as caught:
        deploy(pipeline, platform)
    assert caught.value.code == "deploy.slot_lost"
    assert "public.items" in caught.value.hint
    renewed = deploy(pipeline, platform, new_epoch=True)
    newest, refused, _ = AuditTrail(open_catalog(platform, pipeline), pipeline).entries()
    assert (newest.action, newest.details["start"]) == ("new epoch", renewed.start)
    assert (refused.outcome, refused.details["error"]) == ("failed", "deploy.slot_lost")
    assert renewed.start is not None
    assert first.start is not None
    assert renewed.start.partition("/")[0] != first.start.partition("/")[0]
    db.sql("INSERT INTO items VALUES (1)")
    assert run_capture(pipeline, platform).rows == 1


KEYLESS_PARTITION = (
    "CREATE TABLE sold (id int, day date) PARTITION BY RANGE (day)",
    "CREATE TABLE sold_1 PARTITION OF sold FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
    "ALTER TABLE sold ADD PRIMARY KEY (id, day)",
    "ALTER TABLE sold_1 REPLICA IDENTITY NOTHING",
)


def test_a_deployment_without_a_table_that_is_ready_makes_nothing(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    db.sql("CREATE TABLE keyless (id int)")
    with pytest.raises(ConfigError, match="keyless") as caught:
        deploy(db.pipeline("public.keyless", "public.nowhere"), platform)
    assert caught.value.code == "deploy.not_ready"
    first, *findings = caught.value.message.splitlines()
    assert first == "the source is not ready:"
    assert [finding.split(":")[0].strip() for finding in findings] == [
        "public.keyless",
        "public.nowhere",
    ]
    assert not published(db)
    assert not slots(db)


def test_tables_that_are_not_ready_are_held_and_the_others_deployed(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    db.sql("CREATE TABLE keyless (id int)", *KEYLESS_PARTITION)
    pipeline = db.pipeline("public.items", "public.keyless", "public.nowhere", "public.sold")
    planned = deploy(pipeline, platform, dry_run=True)
    assert len(planned.held) == 3 and not published(db)
    done = deploy(pipeline, platform)
    assert done.held == planned.held and done.status == "deployed"
    assert [held.table for held in done.held] == [
        "public.keyless",
        "public.nowhere",
        "public.sold",
    ]
    assert published(db) == ["items"], "the others would refuse the source's changes (I11)"
    db.sql(
        "INSERT INTO sold VALUES (1, '2026-01-01')", "UPDATE sold SET id = 2", "DELETE FROM sold"
    )
    gate = Gate(open_catalog(platform, pipeline), pipeline, platform.gate)
    states = gate.states()
    assert states["public.items"].state is GateState.OPEN
    assert '"sold_1" REPLICA IDENTITY DEFAULT' in str(states["public.sold"].reason)
    db.sql("INSERT INTO items VALUES (1)")
    assert run_capture(pipeline, platform).rows == 1

    assert deploy(pipeline, platform).status == "unchanged"
    assert len(gate.timeline()) == 3, "nobody is told twice"

    db.sql(
        "ALTER TABLE sold_1 REPLICA IDENTITY DEFAULT", "ALTER TABLE keyless ADD PRIMARY KEY (id)"
    )
    again = deploy(pipeline, platform)
    assert [held.table for held in again.held] == ["public.nowhere"]
    assert published(db) == ["items", "keyless", "sold"]
    states = gate.states()
    assert states["public.sold"].state is GateState.OPEN, "its first sweep is next"
    assert states["public.nowhere"].state is GateState.HELD
    trail = AuditTrail(open_catalog(platform, pipeline), pipeline)
    assert trail.entries()[0].details["held"] == "public.nowhere"


def test_what_is_said_once_for_several_tables_holds_these_alone(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    role = f"capture_{db.name}"
    db.sql(
        f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD '{PASSWORD}'",
        f"GRANT CREATE ON DATABASE {db.name} TO {role}",
        f"ALTER TABLE items OWNER TO {role}",
        "CREATE TABLE third (id int PRIMARY KEY)",
        f"GRANT SELECT ON more, third TO {role}",
    )
    tables = ("public.items", "public.more", "public.third")
    pipeline = db.pipeline(*tables, username=role, ddl_messages="off")
    held = deploy(pipeline, platform).held
    assert [table.table for table in held] == ["public.more", "public.third"]
    assert "only their owner (postgres) may publish" in held[0].reason
    assert published(db) == ["items"]
    with pytest.raises(ConfigError) as caught:
        deploy(db.pipeline(*tables[1:], username=role, ddl_messages="off"), platform)
    assert caught.value.message.count("[postgres.ownership]") == 1, "said once"


def test_a_table_that_may_not_be_read_any_more_goes_on(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    role = f"reader_{db.name}"
    db.sql(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD '{PASSWORD}'")
    db.sql(
        "CREATE PUBLICATION mine FOR TABLE items, more", f"GRANT SELECT ON items, more TO {role}"
    )
    options: dict[str, Any] = {"username": role, "ddl_messages": "off", "publication_name": "mine"}
    pipeline = db.pipeline("public.items", "public.more", **options)
    start = deploy(pipeline, platform).start
    catalog = open_catalog(platform, pipeline)
    identifier = pipeline.targets[0].identifier
    catalog.create_namespace(identifier[0])
    lake = catalog.create_table(identifier, pa.schema([("id", pa.int64())]))
    commits.append_files(lake, (), {POSITION_PROPERTY: str(start)}, None)
    db.sql(f"REVOKE SELECT ON items, more FROM {role}")
    again = deploy(pipeline, platform)
    assert [held.table for held in again.held] == ["public.more"], "it was never swept"
    assert any("public.items" in warning for warning in again.warnings)


def test_a_hold_of_somebody_else_stays_his(db: SourceDatabase, platform: PlatformConfig) -> None:
    db.sql("CREATE TABLE keyless (id int)")
    pipeline = db.pipeline("public.items", "public.keyless")
    gate = Gate(open_catalog(platform, pipeline), pipeline, platform.gate)
    deploy(db.pipeline("public.items"), platform)
    gate.hold(["public.keyless"], "a look", "ann")
    assert deploy(pipeline, platform).held
    db.sql("ALTER TABLE keyless ADD PRIMARY KEY (id)")
    assert not deploy(pipeline, platform).held
    assert gate.states()["public.keyless"].reason == "a look"
    assert published(db) == ["items", "keyless"]


def test_a_killed_deploy_has_held_before_it_published(
    db: SourceDatabase, platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.sql("CREATE TABLE keyless (id int)")
    pipeline = db.pipeline("public.items", "public.keyless")
    monkeypatch.setattr(faults, "_hits", {})
    monkeypatch.setenv("TIDEGATE_FAULT", "deploy.after_holds@raise")
    with pytest.raises(faults.Fault):
        deploy(pipeline, platform)
    monkeypatch.delenv("TIDEGATE_FAULT")
    gate = Gate(open_catalog(platform, pipeline), pipeline, platform.gate)
    assert gate.states()["public.keyless"].state is GateState.HELD
    assert not published(db)
    assert [held.table for held in deploy(pipeline, platform).held] == ["public.keyless"]
    undeploy(pipeline, platform)


def test_what_is_not_built_is_refused(db: SourceDatabase, platform: PlatformConfig) -> None:
    with pytest.raises(ConfigError, match="hook") as caught:
        deploy(db.pipeline("public.items", sinks=WEBHOOK), platform)
    assert caught.value.code == "deploy.sink_not_built"
    kafka = platform.model_copy(update={"transport_mode": TransportMode.KAFKA})
    with pytest.raises(ConfigError) as caught:
        deploy(db.pipeline("public.items"), kafka)
    assert caught.value.code == "deploy.transport_not_built"


def test_a_table_that_is_not_published_is_noted_and_stops_nobody_else(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    deploy(db.pipeline("public.items"), platform)
    with pytest.raises(ConfigError, match=r"public\.more") as caught:
        run_capture(db.pipeline("public.more"), platform)
    assert caught.value.code == "capture.not_published"
    both = db.pipeline("public.items", "public.more")

    def sent() -> list[bool]:
        looks = FactsLedger(open_catalog(platform, both), both).all("public.more")
        return [look.facts.sent for look in looks]

    db.sql("INSERT INTO items VALUES (100)")
    assert run_capture(both, platform).rows == 1
    assert sent() == [False]
    deploy(both, platform)
    db.sql("INSERT INTO items VALUES (101)")
    assert run_capture(both, platform).rows == 1
    assert sent() == [False, True]


def test_changes_of_a_table_that_was_out_of_the_file_are_known_to_be_missing(
    db: SourceDatabase, platform: PlatformConfig
) -> None:
    """Taken out and put back without a deployment: the source sends them, nobody took them."""
    both = db.pipeline("public.items", "public.more")
    start = Position.parse(str(deploy(both, platform).start))

    def captured(*tables: str) -> list[str]:
        db.sql("INSERT INTO items SELECT coalesce(max(id), 0) + 1 FROM items")
        head = run_capture(db.pipeline(*tables), platform).through
        looks = FactsLedger(open_catalog(platform, both), both).all("public.more")
        return unsent(looks, start, head, SchemaChanges())

    assert captured("public.items", "public.more") == []
    assert captured("public.items")
    assert captured("public.items")
    assert captured("public.items", "public.more"), "its own place in the log is before the gap"


def test_a_run_that_goes_on_looks_again_for_tables_that_were_not_ready(
    db: SourceDatabase, platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.sql("CREATE TABLE keyless (id int)")
    pipeline = db.pipeline("public.items", "public.keyless")
    outcome = run.RunOutcome()
    stop = threading.Event()
    job = run._Run(None, pipeline, platform, stop, silent, outcome)  # type: ignore[arg-type]
    job.deploy()
    db.sql("ALTER TABLE keyless ADD PRIMARY KEY (id)")
    job._ask_again()
    assert outcome.not_ready, "not at every round"
    monkeypatch.setattr(run, "READY_SECONDS", 0.0)
    job._ask_again()
    assert not outcome.not_ready and published(db) == ["items", "keyless"]
    assert job._never_swept() == ["public.items", "public.keyless"]
