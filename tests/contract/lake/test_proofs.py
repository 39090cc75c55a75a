"""Proofs stand while nothing but the log was applied since, and no longer."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tests.support.lake import log_rows
from tidegate.cli import proofs as shown
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.status import status
from tidegate.envelope.position import boundary
from tidegate.lake import commits
from tidegate.lake import proofs as module
from tidegate.lake.catalog import ensure_namespace
from tidegate.lake.coverage import Coverage
from tidegate.lake.log_table import LOG_SCHEMA
from tidegate.lake.proofs import Proof, Proofs, standing
from tidegate.names import POSITION_PROPERTY, STEP_PROPERTY
from tidegate.schema.keyspace import BUCKETS

ORDERS = "public.orders"


class Lake:
    """The table ``shop.orders``, written step by step."""

    def __init__(self, catalog: Catalog) -> None:
        ensure_namespace(catalog, "shop")
        properties = {"format-version": "2"}
        self.table: Table = catalog.create_table(
            ("shop", "orders"), LOG_SCHEMA, properties=properties
        )
        self.lsn = 100

    def write(self, step: str | None) -> int:
        self.lsn += 1
        files = commits.write_files(self.table, pa.Table.from_batches([log_rows([self.lsn])]))
        stamp = {POSITION_PROPERTY: str(boundary("e1", self.lsn)), STEP_PROPERTY: str(step)}
        self.table.refresh()
        return commits.append_files(
            self.table, files, stamp if step else {}, commits.head_id(self.table)
        )

    def back_to(self, snapshot_id: int) -> None:
        self.table.manage_snapshots().rollback_to_snapshot(snapshot_id).commit()


def proof(snapshot_id: int, lsn: int = 100, share: float = 1.0) -> Proof:
    found = Coverage()
    found = found.after(found.next(share), (), boundary("e1", lsn), datetime.now(UTC))
    return Proof(ORDERS, f"verify_{lsn}", snapshot_id, found)


@pytest.fixture
def lake(catalog: Catalog) -> Lake:
    return Lake(catalog)


@pytest.fixture
def proofs(catalog: Catalog, pipeline: PipelineConfig) -> Proofs:
    return Proofs(catalog, pipeline)


def test_a_proof_outlives_applies_stamps_and_repairs(lake: Lake, proofs: Proofs) -> None:
    proofs.add([proof(lake.write("sweep"))])
    for step in ("apply", "part", "stamp", "repair"):
        lake.write(step)
    found = standing(lake.table.refresh(), proofs.read()[ORDERS])
    assert found.coverage.percent == 100.0
    assert found.withdrawn is None


@pytest.mark.parametrize(
    ("step", "why"),
    [("sweep", "swept since"), ("offset", "set by hand"), (None, "another program wrote")],
)
def test_a_sweep_a_set_position_or_a_foreign_write_ends_it(
    lake: Lake, proofs: Proofs, step: str | None, why: str
) -> None:
    proofs.add([proof(lake.write("apply"))])
    lake.write(step)
    lake.write("apply")  # what follows does not bring it back
    found = standing(lake.table.refresh(), proofs.read()[ORDERS])
    assert found.proof is None
    assert why in str(found.withdrawn)


def test_a_rollback_takes_the_proof_back_to_the_one_before(
    lake: Lake, proofs: Proofs, pipeline: PipelineConfig, platform: PlatformConfig
) -> None:
    first = lake.write("sweep")
    proofs.add([proof(first, 101, share=0.5)])
    proofs.add([proof(lake.write("apply"), 102)])
    assert shown_coverage(pipeline, platform) == (100.0, None)
    lake.back_to(first)
    lake.write("apply")
    coverage, withdrawn = shown_coverage(pipeline, platform)
    assert coverage == 50.0
    assert "rolled back" in str(withdrawn)


def shown_coverage(pipeline: PipelineConfig, platform: PlatformConfig) -> tuple[float, str | None]:
    customers, orders = status(pipeline, platform, ask_source=False).tables
    assert customers.verified_through is None
    known = orders.verified_through
    assert known is not None
    line = shown.line(ORDERS, known).plain
    assert f"{known.coverage:g} % of the keys" in line
    assert ("withdrawn" in line) == (known.withdrawn is not None)
    return known.coverage, known.withdrawn


def test_a_proof_is_carried_before_its_snapshot_expires(lake: Lake, proofs: Proofs) -> None:
    proven = lake.write("sweep")
    proofs.add([proof(proven)])
    newest = lake.write("apply")
    proofs.carry(ORDERS, lake.table.refresh())
    proofs.carry(ORDERS, lake.table)  # again: nothing to do
    assert [known.snapshot_id for known in proofs.read()[ORDERS]] == [newest, proven]
    lake.table.maintenance.expire_snapshots().by_id(proven).commit()
    assert standing(lake.table.refresh(), proofs.read()[ORDERS]).coverage.percent == 100.0


def test_an_expired_snapshot_proves_nothing(lake: Lake, proofs: Proofs) -> None:
    proven = lake.write("apply")
    proofs.add([proof(proven)])
    lake.write("apply")
    lake.table.maintenance.expire_snapshots().by_id(proven).commit()
    assert "expired" in str(standing(lake.table.refresh(), proofs.read()[ORDERS]).withdrawn)


def test_old_proofs_are_folded_away(
    lake: Lake, proofs: Proofs, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_FILES", 4)
    monkeypatch.setattr(module, "KEPT_PER_TABLE", 2)
    head = lake.write("apply")
    for lsn in range(1, 6):
        proofs.add([proof(head, lsn)])
    kept = proofs.read()[ORDERS]
    assert [known.run for known in kept][:2] == ["verify_5", "verify_4"]
    assert len(kept) < 5
    assert len(kept[0].coverage.proven) == BUCKETS
    assert len(list(catalog.load_table(proofs.identifier).scan().plan_files())) < 4
