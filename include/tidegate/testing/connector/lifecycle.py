"""Opening, closing, what a connector says of itself, and what it refuses."""

from __future__ import annotations

import pytest

from tidegate.connectors.cut import SharedCut
from tidegate.connectors.protocol import (
    PROTOCOL_VERSION,
    Capability,
    ListsTables,
    ValidationReport,
)
from tidegate.connectors.running import ConnectorRole, RunPhase, RunRequest
from tidegate.envelope.position import Position
from tidegate.errors import ConfigError, FatalError, TidegateError, decide
from tidegate.names import TableId
from tidegate.testing.connector.history import (
    DEPLOYMENT,
    ITEMS,
    OTHER,
    deployed,
    drained,
    make_tables,
    opened,
)
from tidegate.testing.connector.subject import Subject


def has_code_and_hint(error: TidegateError) -> bool:
    """``area.reason``, what happened, what to do next."""
    area, dot, reason = error.code.partition(".")
    return bool(area and dot and reason and error.message and error.hint)


class LifecycleChecks:
    """``open``, ``run``, ``close``, ``capabilities``."""

    def test_it_opens_twice_closes_twice_and_says_what_it_is(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        connector = subject.open(ITEMS)
        info = connector.open()
        assert connector.open() == info
        assert (info.connector_id, info.role) == (subject.source_type, ConnectorRole.SOURCE)
        assert info.protocol_version == PROTOCOL_VERSION
        assert info.system
        assert info.capabilities == connector.capabilities
        assert all(isinstance(one, Capability) for one in info.capabilities)
        assert all(limit > 0 for limit in info.default_limits.values())
        connector.close()
        connector.close()

    def test_it_discovers_what_it_is_asked_for(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        with opened(subject, ITEMS, OTHER) as connector:
            found = connector.run(RunRequest(RunPhase.DISCOVER))
            assert [schema.table.name for schema in found.schemas] == [ITEMS, OTHER]
            assert (found.role, found.phase) == (ConnectorRole.SOURCE, RunPhase.DISCOVER)
            assert (found.read, found.write, found.transform) == (None, None, None)
            items = found.schemas[0]
            assert [column.name for column in items.columns] == ["id", "name", "amount"]
            assert [column.name for column in items.key_columns] == ["id"]
            assert items == connector.discover(subject.table(ITEMS))
            one = RunRequest(RunPhase.DISCOVER, streams=(str(subject.table(OTHER)),))
            assert connector.run(one).schemas == found.schemas[1:]
            first = connector.run(RunRequest(RunPhase.DISCOVER, max_records=1))
            assert first.schemas == found.schemas[:1]

    @pytest.mark.parametrize("phase", [RunPhase.WRITE, RunPhase.TRANSFORM])
    def test_a_phase_that_it_does_not_run_is_refused(
        self, subject: Subject, phase: RunPhase
    ) -> None:
        make_tables(subject, ITEMS)
        with opened(subject, ITEMS) as connector, pytest.raises(ConfigError) as refused:
            connector.run(RunRequest(phase))
        assert refused.value.code == "connector.phase"
        assert has_code_and_hint(refused.value)

    def test_its_capabilities_are_what_it_does(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        with opened(subject, ITEMS) as connector:
            can = connector.capabilities
            needed = {Capability.SCHEMA_DISCOVER, Capability.CHANGES_READ, Capability.CUT_READ}
            assert needed <= can
            assert (Capability.TABLES_LIST in can) is isinstance(connector, ListsTables)
            if isinstance(connector, ListsTables):
                found = {table.table: table.keyed for table in connector.available()}
                assert found[str(subject.table(ITEMS))] is True
            makes = Capability.SOURCE_PROVISION in can
            assert bool(connector.plan(DEPLOYMENT)) is makes
        with deployed(subject, ITEMS) as (connector, made):
            assert bool(made.actions) is makes
            with connector.cut((subject.table(ITEMS),), head=made.start) as cut:
                assert isinstance(cut, SharedCut) is (Capability.CUT_SHARE in can)
            if Capability.CUT_HOLD not in can:
                with pytest.raises(ConfigError) as refused:
                    connector.hold((subject.table(ITEMS),), head=made.start)
                assert has_code_and_hint(refused.value)


class ValidationChecks:
    """``validate``, and input that is wrong."""

    def test_a_good_source_is_valid_and_left_as_it_was(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        before = subject.objects()
        with opened(subject, ITEMS) as connector:
            report = connector.validate()
            assert report.ok, [str(problem) for problem in report.errors]
            connector.plan(DEPLOYMENT)
        assert subject.objects() == before

    def test_every_problem_is_told_at_once(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        with opened(subject, ITEMS, "gone", "lost") as connector:
            report = connector.validate()
        assert not report.ok
        assert _told(report) >= {str(subject.table("gone")), str(subject.table("lost"))}
        assert str(subject.table(ITEMS)) not in _told(report)
        for problem in report.problems:
            assert "." in problem.code
            assert problem.message

    def test_wrong_addresses_and_credentials_are_told_apart(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        assert subject.mistakes()
        for mistake in subject.mistakes():
            with opened(subject, ITEMS, **mistake.source) as connector:
                for ask in (connector.open, connector.validate):
                    with pytest.raises(TidegateError) as told:
                        ask()
                    assert has_code_and_hint(told.value)
                    assert decide(told.value) is mistake.decision, (mistake.name, told.value)
                    secret = str(mistake.source.get("password", ""))
                    assert not secret or secret not in str(told.value)

    def test_a_table_that_is_not_there_is_refused(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        gone: TableId = subject.table("gone")
        with deployed(subject, ITEMS) as (connector, made):
            with pytest.raises(ConfigError) as refused:
                connector.discover(gone)
            assert has_code_and_hint(refused.value)
            with pytest.raises(ConfigError), connector.cut((gone,), head=made.start):
                pass

    def test_a_position_of_another_log_is_refused(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        with deployed(subject, ITEMS) as (connector, made):
            connector.check_history(made.start)
            other = Position("elsewhere", made.start.place)
            with pytest.raises(FatalError) as refused:
                connector.check_history(other)
            assert has_code_and_hint(refused.value)
            with pytest.raises(FatalError):
                drained(connector, other)


def _told(report: ValidationReport) -> set[str | None]:
    return {problem.table for problem in report.errors}
