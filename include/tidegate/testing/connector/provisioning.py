"""What a connector makes at the source: once, and gone again to the last object."""

from __future__ import annotations

from tidegate.testing.connector.history import (
    DEPLOYMENT,
    ITEMS,
    OTHER,
    deployed,
    drained,
    in_order,
    make_tables,
    opened,
)
from tidegate.testing.connector.subject import Subject


class ProvisioningChecks:
    """``plan``, ``provision``, ``deprovision``."""

    def test_provisioning_again_changes_nothing(self, subject: Subject) -> None:
        make_tables(subject, ITEMS)
        with deployed(subject, ITEMS) as (connector, made):
            there = subject.objects()
            again = connector.provision(DEPLOYMENT, ours=True)
            assert again.actions == ()
            assert again.objects == made.objects
            assert again.start.epoch == made.start.epoch
            assert connector.plan(DEPLOYMENT) == ()
            assert subject.objects() == there
            assert connector.validate().ok

    def test_deprovisioning_removes_exactly_what_was_made(self, subject: Subject) -> None:
        make_tables(subject, ITEMS, OTHER)
        subject.sql(f"INSERT INTO {subject.table(ITEMS).sql} VALUES (1, 'kept', 1)")
        with deployed(subject, ITEMS, pipeline_id="neighbour") as (neighbour, theirs):
            before = subject.objects()
            with opened(subject, ITEMS, OTHER) as connector:
                made = connector.provision("another-deployment", ours=True)
                told = connector.deprovision("another-deployment", ours=True, dry_run=True)
                assert bool(told) is bool(made.actions)
                assert (subject.objects() != before) is bool(made.actions)
                assert connector.deprovision("another-deployment", ours=True) == told
                assert subject.objects() == before
                assert connector.deprovision("another-deployment", ours=True) == ()
            subject.sql(f"INSERT INTO {subject.table(ITEMS).sql} VALUES (2, 'new', 2)")
            rows = in_order(drained(neighbour, theirs.start))
            assert [row["key"] for row in rows] == [["2"]]
        assert len(subject.rows(f"SELECT * FROM {subject.table(ITEMS).sql}")) == 2
