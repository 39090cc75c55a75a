"""A held schema change becomes a question in Airflow; the answer is the same approval as the CLI's.

Real PostgreSQL, real capture, a lake without Spark, Airflow's own operator, API and sign-in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField

from tests.dags.conftest import PROJECT, Airflow, Run
from tests.support.by_hand import swept_by_hand
from tests.support.postgres import SourceDatabase
from tidegate.airflow.questions import APPROVE, LEAVE
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.schemas import held
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.lake.audit_trail import AuditTrail
from tidegate.lake.catalog import open_catalog
from tidegate.lake.gate import Gate, GateState
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.schema_hold import HOLD_MARK
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER

pytestmark = [pytest.mark.postgres, pytest.mark.airflow, pytest.mark.timeout(900)]

TABLES = ("public.asked", "public.cast", "public.left")
ROW = "canary-row-5d1e"
LAKE = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "v", IntegerType(), required=False),
    identifier_field_ids=[1],
)


class Shop:
    """Three tables whose ``v`` was an integer in the lake and is text at the source."""

    def __init__(self, airflow: Airflow, file: Path, platform_file: Path) -> None:
        self.airflow = airflow
        self.pipeline: PipelineConfig = load_pipeline(file)
        self.platform: PlatformConfig = load_platform(platform_file)
        self.dag_id = f"{self.pipeline.pipeline_id}__schema"

    def asked(self, *answers: dict[str, Any]) -> tuple[Run, list[dict[str, Any]]]:
        """A run of the Dag, and what its answers were answers to."""
        with self.airflow.start(self.dag_id) as process:
            responding = subprocess.run(
                [sys.executable, "-m", "tests.dags.respond", self.dag_id, json.dumps(answers)],
                capture_output=True,
                text=True,
                env=self.airflow.environment,
                check=False,
            )
            if responding.returncode != 0:
                process.terminate()
            output, _ = process.communicate()
        assert responding.returncode == 0, responding.stderr[-3000:] + output[-3000:]
        ended = json.loads(output.splitlines()[-1])
        run = Run(ended["state"], ended["tasks"], output)
        return run, json.loads(responding.stdout.splitlines()[-1])

    def gates(self) -> dict[str, GateState]:
        catalog = open_catalog(self.platform, self.pipeline)
        states = Gate(catalog, self.pipeline, self.platform.gate).states(TABLES)
        catalog.close()
        return {name: known.state for name, known in states.items()}


@pytest.fixture
def shop(
    airflow: Airflow,
    tmp_path: Path,
    pipelines: Path,
    platform_file: Path,
    source_db: SourceDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> Shop:
    for table in TABLES:
        source_db.sql(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, v int)",
            f"ALTER TABLE {table} REPLICA IDENTITY DEFAULT",
        )
    file = pipelines / f"{source_db.name}.yaml"
    file.write_text(
        f"pipeline_id: {source_db.name}\n"
        "source:\n"
        f"  port: {source_db.server.port}\n"
        "  host: 127.0.0.1\n"
        f"  database: {source_db.name}\n"
        f"  username: {SUPERUSER}\n"
        "  password: ${TIDEGATE_TEST_PASSWORD}\n"
        f"  tables: [{', '.join(TABLES)}]\n"
    )
    monkeypatch.setenv("TIDEGATE_TEST_PASSWORD", PASSWORD)
    passwords = tmp_path / "passwords.json"
    passwords.write_text('{"ann": "only-for-tests"}')
    airflow.environment |= {
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ann:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "TIDEGATE_PIPELINES_DIR": str(pipelines),
        "TIDEGATE_PLATFORM_FILE": str(platform_file),
        "TIDEGATE_TEST_PASSWORD": PASSWORD,
    }
    made = Shop(airflow, file, platform_file)
    deploy(made.pipeline, made.platform)
    source_db.sql(*(f"INSERT INTO {table} VALUES (1, 1)" for table in TABLES))
    run_capture(made.pipeline, made.platform)
    for table in TABLES:
        swept_by_hand(made.pipeline, made.platform, table, LAKE)
        source_db.sql(
            f"ALTER TABLE {table} ALTER v TYPE text", f"INSERT INTO {table} VALUES (2, '{ROW}')"
        )
    run_capture(made.pipeline, made.platform)
    catalog = open_catalog(made.platform, made.pipeline)
    Gate(catalog, made.pipeline, made.platform.gate).hold(TABLES, f"{HOLD_MARK}: …", "apply run")
    catalog.close()
    return made


def answer(map_index: int, option: str | None, **params: Any) -> dict[str, Any]:
    form = {"rename": [], "cast": [], "reason": "", **params}
    options = None if option is None else [option]
    return {"map_index": map_index, "options": options, "params": form}


def test_a_held_change_is_asked_answered_and_not_asked_again(shop: Shop) -> None:
    run, shown = shop.asked(
        answer(0, None),
        answer(1, APPROVE, cast=["v=int"], reason="numbers only"),
        answer(2, LEAVE, reason="they will change it back"),
    )
    assert [one["table"] for one in shown] == list(TABLES)
    assert shown[0]["options"] == [APPROVE, LEAVE]
    assert set(shown[0]["params"]) == {"rename", "cast", "reason"}
    assert "| v | int | text as string |" in shown[0]["body"]
    states = {name: run.tasks[name] for name in run.tasks if name.startswith("let_through")}
    assert states == {
        "let_through[0]": "skipped",  # nobody answered in time
        "let_through[1]": "success",
        "let_through[2]": "success",
    }, run.output
    assert shop.gates() == {
        "public.asked": GateState.HELD,
        "public.cast": GateState.OPEN,
        "public.left": GateState.HELD,
    }
    catalog = open_catalog(shop.platform, shop.pipeline)
    (approval,) = SchemaHistory(catalog, shop.pipeline).approvals.all()
    assert (approval.table, approval.actor) == ("public.cast", "ann (airflow)")
    assert approval.casts == {"v": "int"}
    trail = {
        entry.action: (entry.actor, entry.surface, entry.tables, entry.details["reason"])
        for entry in AuditTrail(catalog, shop.pipeline).entries()
        if entry.action in ("approve", "leave held")
    }
    catalog.close()
    assert trail == {
        "approve": ("ann", "airflow", ("public.cast",), "numbers only"),
        "leave held": ("ann", "airflow", ("public.left",), "they will change it back"),
    }
    left = {one.table: one.left_by for one in held(shop.pipeline, shop.platform)}
    assert left == {"public.asked": None, "public.left": "ann"}

    # The next run asks what nobody answered, and nothing else.
    run, shown = shop.asked(answer(0, APPROVE))
    assert [one["table"] for one in shown] == ["public.asked"]
    assert run.tasks["let_through[0]"] == "success"
    assert shop.gates()["public.asked"] is GateState.OPEN
    assert ROW not in run.output + shop.airflow.everything_stored()
