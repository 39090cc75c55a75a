"""The audit trail: begun before, ended after, true when the process dies in between."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from tests.support.faults import Files
from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control import gates
from tidegate.control.audit import audit
from tidegate.errors import ConfigError, HeldError
from tidegate.lake import audit_trail as module
from tidegate.lake.audit_trail import Action, AuditTrail
from tidegate.lake.gate import Gate, GateState
from tidegate.observability.caller import Caller, Surface, acting_as

INCLUDE = Path(faults.__file__).parents[1]
ENTRY = "import sys; from tidegate.cli.main import main; main(sys.argv[1:])"


@pytest.fixture
def trail(catalog: Catalog, pipeline: PipelineConfig) -> AuditTrail:
    return AuditTrail(catalog, pipeline)


def test_an_action_is_begun_before_and_done_after(trail: AuditTrail) -> None:
    ann = acting_as(Caller("ann", Surface.API))
    with ann, trail.action(Action.SWEEP, ["public.orders"], run="r1", reason=None) as noting:
        (running,) = trail.entries()
        assert (running.outcome, running.ended_at) == ("begun", None)
        noting.add(swept=1)
    (entry,) = trail.entries()
    assert (entry.action, entry.actor, entry.surface) == ("sweep", "ann", "api")
    assert entry.tables == ("public.orders",)
    assert entry.outcome == "done"
    assert entry.ended_at is not None and entry.ended_at >= entry.at
    assert entry.details == {"run": "r1", "swept": 1}


def test_a_failure_is_noted_by_its_code_and_raised(trail: AuditTrail) -> None:
    with pytest.raises(HeldError), trail.action(Action.UNDEPLOY, []):
        raise HeldError("gate.sweeping", "a message that may say anything", hint="wait")
    with pytest.raises(ZeroDivisionError), trail.action(Action.DEPLOY, []):
        1 / 0
    told = [(e.action, e.outcome, e.details) for e in trail.entries()]
    assert told == [
        ("deploy", "failed", {"error": "ZeroDivisionError"}),
        ("undeploy", "failed", {"error": "gate.sweeping"}),
    ]


def test_entries_of_one_table_and_no_more_than_asked_for(trail: AuditTrail) -> None:
    trail.note("redrive", ["public.orders"], "ann", "api", {"letters": 3})
    trail.note("discard", ["public.customers", "public.orders"])
    trail.note("approve", ["public.customers"])
    assert [e.action for e in trail.entries(["public.orders"])] == ["discard", "redrive"]
    assert [e.action for e in trail.entries(limit=1)] == ["approve"]
    redrive = trail.entries()[-1]
    assert (redrive.actor, redrive.surface, redrive.details) == ("ann", "api", {"letters": 3})


def test_an_action_nobody_knows_is_refused(trail: AuditTrail) -> None:
    with pytest.raises(ConfigError, match="no action") as caught:
        trail.note("gossip", [])
    assert caught.value.code == "audit.action"


def test_the_trail_is_folded_and_bounded(
    catalog: Catalog, trail: AuditTrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_FILES", 5)
    monkeypatch.setattr(module, "KEPT", 7)
    for number in range(12):
        trail.note("hold", [f"public.t{number}"])
    assert len(list(catalog.load_table(trail.identifier).scan().plan_files())) < 5
    newest = [entry.tables[0] for entry in trail.entries()]
    assert newest[:7] == [f"public.t{number}" for number in range(11, 4, -1)]
    assert len(newest) < 12


def test_the_end_of_an_action_that_removes_the_trail_does_not_bring_it_back(
    catalog: Catalog, trail: AuditTrail
) -> None:
    with trail.action(Action.UNDEPLOY, []):
        trail.drop()
    assert not catalog.table_exists(trail.identifier)


def test_gates_tell_who_held_and_opened_them(
    platform: PlatformConfig, pipeline: PipelineConfig, catalog: Catalog
) -> None:
    Gate(catalog, pipeline, platform.gate).begin_sweep("s1", ["public.orders"], "me")
    with acting_as(Caller("ann@desk", Surface.CLI)):
        gates.hold(pipeline, platform, ["public.customers"], reason="a look", actor="ann")
        with pytest.raises(HeldError):
            gates.open_gates(pipeline, platform, reason="seen", actor="ann")
        gates.open_gates(pipeline, platform, reason="seen", actor="ann", abandon=True)
    told = [(e.action, e.outcome, e.actor, e.surface) for e in audit(pipeline, platform).entries]
    assert told == [
        ("abandon", "done", "ann@desk", "cli"),
        ("open", "failed", "ann@desk", "cli"),
        ("hold", "done", "ann@desk", "cli"),
    ]
    (held,) = audit(pipeline, platform, ["public.customers"], limit=3).entries[-1:]
    assert held.details == {"reason": "a look"}


def test_killed_right_after_begun_the_trail_tells_what_is_known(
    tmp_path: Path, platform: PlatformConfig, pipeline: PipelineConfig, catalog: Catalog
) -> None:
    """The gate is still open: an action that is begun may or may not have happened."""
    Files.write(tmp_path, pipeline, platform)
    command = [sys.executable, "-c", ENTRY, "gate", "hold", str(tmp_path / "pipeline.yaml")]
    command += ["--platform-config", str(tmp_path / "platform.yaml"), "--table", "public.orders"]
    environment = {"PYTHONPATH": str(INCLUDE), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def run(**fault: str) -> int:
        return subprocess.run(command, env=environment | fault, check=False).returncode

    assert run(TIDEGATE_FAULT="audit.after_begun") == faults.EXIT_STATUS
    gate = Gate(catalog, pipeline, platform.gate)
    (entry,) = audit(pipeline, platform).entries
    assert (entry.action, entry.outcome, entry.surface) == ("hold", "begun", "cli")
    assert gate.states(["public.orders"])["public.orders"].state is GateState.OPEN
    assert run() == 0
    assert [e.outcome for e in audit(pipeline, platform).entries] == ["done", "begun"]
    assert gate.states(["public.orders"])["public.orders"].state is GateState.HELD
