"""Pipeline files become Dags; a broken one never takes the others with it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.definitions.context import _AIRFLOW_PARSING_CONTEXT_DAG_ID

from tests.dags.conftest import PROJECT, Airflow, PipelineFile
from tidegate.airflow.dags.changes import ACTIVE_RUNS
from tidegate.airflow.dags.offsets import offset_arguments
from tidegate.airflow.dags.redrive import redrive_arguments
from tidegate.airflow.dags.reload import reload_arguments
from tidegate.airflow.dags.sweep import sweep_arguments
from tidegate.airflow.dags.verify import verify_arguments
from tidegate.airflow.factory import build_dags, raise_problems
from tidegate.errors import ConfigError

KINDS = ("changes", "maintenance", "offsets", "redrive", "rollback", "schema", "sweep", "verify")
RELOAD = """
sinks:
  - sink_id: lake
    sink_type: iceberg
    iceberg: {tables: {public.orders: {reload: {time_column: placed_at}}}}
"""


@pytest.fixture
def dags(pipelines: Path, pipeline_file: PipelineFile, platform_file: Path) -> dict[str, DAG]:
    pipeline_file("shop", rest="owner: data-team\ntags: [gold]\nschedules: {verify: null}\n")
    return build_dags(pipelines, platform_file)


def test_a_pipeline_file_gives_its_dags(dags: dict[str, DAG]) -> None:
    assert sorted(dags) == [f"shop__{kind}" for kind in KINDS]


def test_a_task_that_starts_builds_its_own_dag_and_no_other(
    pipelines: Path, pipeline_file: PipelineFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline_file("shop")
    pipeline_file("shop__sweep")
    monkeypatch.setenv(_AIRFLOW_PARSING_CONTEXT_DAG_ID, "shop__sweep__sweep")
    assert sorted(build_dags(pipelines)) == ["shop__sweep__sweep"]


def test_dags_carry_owner_tags_and_documentation(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        assert {"tidegate", "shop", "gold"} <= dag.tags
        assert {task.owner for task in dag.tasks} == {"data-team"}
        assert "`public.orders` | `shop.orders`" in (dag.doc_md or "")
        assert not dag.catchup


def test_schedules_come_from_the_file(dags: dict[str, DAG]) -> None:
    assert dags["shop__changes"].schedule == "*/5 * * * *"
    assert dags["shop__maintenance"].schedule == "@hourly"
    assert dags["shop__sweep"].schedule is None
    assert dags["shop__verify"].schedule is None
    assert dags["shop__schema"].schedule == "@daily"


def test_changes_captures_once_and_holds_closed_tables_apart(dags: dict[str, DAG]) -> None:
    dag = dags["shop__changes"]
    assert dag.max_active_runs == ACTIVE_RUNS
    assert dag.get_task("capture").max_active_tis_per_dag == 1
    downstream = {task.task_id: task.downstream_task_ids for task in dag.tasks}
    assert downstream["capture"] == {"apply_open", "closed_tables"}
    assert downstream["apply_open"] == {"failed_tables", "first_sweep"}
    assert downstream["gate"] == {"apply_held"}
    assert "apply_open" not in downstream["gate"]


def test_schemas_are_registered_beside_apply_where_a_registry_is_used(
    pipelines: Path, pipeline_file: PipelineFile, platform_file: Path, dags: dict[str, DAG]
) -> None:
    assert not dags["shop__changes"].has_task("register_schemas")
    platform_file.write_text(
        platform_file.read_text() + "schema_registry: {enabled: true, password: '${NOT_SET}',"
        " username: ann}\n"
    )
    dag = build_dags(pipelines, platform_file)["shop__changes"]
    task = dag.get_task("register_schemas")
    assert task.upstream_task_ids == {"capture"} and not task.downstream_task_ids
    assert task.retries == 0


def test_held_changes_are_asked_about_for_less_than_the_time_to_the_next_run(
    pipelines: Path, pipeline_file: PipelineFile, dags: dict[str, DAG]
) -> None:
    dag = dags["shop__schema"]
    assert dag.max_active_runs == 1
    assert dag.get_task("approve").downstream_task_ids == {"let_through"}
    assert dag.get_task("approve").response_timeout == timedelta(hours=20)
    pipeline_file("shop", rest="schedules: {schema_check: '@hourly'}\n")
    hourly = build_dags(pipelines)["shop__schema"].get_task("approve")
    assert hourly.response_timeout == timedelta(minutes=54)
    assert hourly.defaults == ["Leave held"], "silence approves nothing"


def test_first_sweeps_are_left_out_where_the_file_says_never(
    pipelines: Path, pipeline_file: PipelineFile
) -> None:
    pipeline_file("shop", source="  snapshot_mode: never\n")
    assert not build_dags(pipelines)["shop__changes"].has_task("first_sweep")


def test_the_sweep_form_takes_only_the_pipelines_tables(dags: dict[str, DAG]) -> None:
    params = dags["shop__sweep"].params
    assert params["tables"] == ["public.customers", "public.orders"]
    params["tables"] = ["public.orders"]
    with pytest.raises(Exception, match="nowhere"):
        params["tables"] = ["public.nowhere"]
    with pytest.raises(Exception, match=r"non-empty|too short"):
        params["tables"] = []


def test_the_sweep_form_can_ask_for_what_is_lost(dags: dict[str, DAG]) -> None:
    params = dags["shop__sweep"].params.dump()
    assert sweep_arguments(params) == ["--tables", "public.customers", "public.orders"]
    lost = sweep_arguments({**params, "lost_only": True, "dry_run": True})
    assert lost == ["--lost-only", "--dry-run"]


def test_a_scheduled_verification_takes_the_files_sample(
    pipelines: Path, pipeline_file: PipelineFile
) -> None:
    pipeline_file("shop", rest="verify: {sample: 5%}\n")
    params = build_dags(pipelines)["shop__verify"].params.dump()
    assert verify_arguments(params) == [
        *("--tables", "public.customers", "public.orders"),
        "--sample=5%",
    ]
    assert verify_arguments({**params, "repair": True, "dry_run": True})[-2:] == [
        "--repair",
        "--dry-run",
    ]


def test_reload_exists_where_a_table_has_a_time_column_and_can_be_backfilled(
    pipelines: Path, pipeline_file: PipelineFile
) -> None:
    pipeline_file("shop", rest=RELOAD)
    dag = build_dags(pipelines)["shop__reload"]
    assert dag.params["tables"] == ["public.orders"]
    assert isinstance(dag.timetable, CronDataIntervalTimetable)
    assert dag.timetable.expression == "0 0 * * *"
    task = dag.get_task("reload")
    day = {
        "data_interval_start": datetime(2026, 3, 1, tzinfo=UTC),
        "data_interval_end": datetime(2026, 3, 2, tzinfo=UTC),
    }
    assert task.render_template(task.options, day) == (
        "--from=2026-03-01T00:00:00+00:00",
        "--to=2026-03-02T00:00:00+00:00",
    )
    assert reload_arguments(dag.params.dump()) == ["--tables", "public.orders"]


def test_airflow_backfills_reload_over_a_range_of_days(
    airflow: Airflow, pipelines: Path, pipeline_file: PipelineFile
) -> None:
    pipeline_file("shop", rest=RELOAD)
    environment = {
        **airflow.environment,
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "TIDEGATE_PIPELINES_DIR": str(pipelines),
    }

    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *words],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call("dags", "reserialize")
    days = ("--from-date", "2026-03-01", "--to-date", "2026-03-03")
    planned = call("backfill", "create", "--dag-id", "shop__reload", *days, "--dry-run")
    for day in ("2026-03-01", "2026-03-02", "2026-03-03"):
        assert f"{day}T00:00:00" in planned.replace(f"{day} 00:00:00", f"{day}T00:00:00"), planned


def test_secrets_need_not_exist_at_parse_time(dags: dict[str, DAG]) -> None:
    """TIDEGATE_TEST_PASSWORD is set nowhere."""
    assert dags


def test_a_broken_file_leaves_the_others_their_dags(
    pipelines: Path, pipeline_file: PipelineFile
) -> None:
    pipeline_file("shop")
    (pipelines / "broken.yaml").write_text("pipeline_id: broken\nsource: {tabels: [a]}\n")
    (pipelines / "notes.yaml.example").write_text("not: a pipeline\n")
    assert {dag_id.split("__")[0] for dag_id in build_dags(pipelines)} == {"shop"}
    with pytest.raises(ConfigError) as caught:
        raise_problems(pipelines)
    assert "broken.yaml" in str(caught.value)
    assert "tabels" in str(caught.value)
    assert "nearest" in str(caught.value)


def test_two_files_with_one_id_are_told_apart(pipelines: Path, pipeline_file: PipelineFile) -> None:
    file = pipeline_file("shop")
    (pipelines / "shop_copy.yaml").write_text(file.read_text())
    with pytest.raises(ConfigError, match=r"shop_copy\.yaml: pipeline_id shop is also used by"):
        raise_problems(pipelines)


def test_a_schedule_airflow_does_not_understand_is_named_with_its_file(
    pipelines: Path, pipeline_file: PipelineFile
) -> None:
    pipeline_file("shop")
    pipeline_file("odd", rest="schedules: {changes: 'every now and then'}\n")
    assert {dag_id.split("__")[0] for dag_id in build_dags(pipelines)} == {"shop"}
    with pytest.raises(ConfigError, match=r"odd\.yaml"):
        raise_problems(pipelines)


def test_a_broken_platform_file_is_said_once(pipelines: Path, pipeline_file: PipelineFile) -> None:
    pipeline_file("shop")
    platform = pipelines.parent / "platform.yaml"
    platform.write_text("spark: {mastre: yarn}\n")
    assert build_dags(pipelines, platform) == {}
    with pytest.raises(ConfigError, match="mastre"):
        raise_problems(pipelines, platform)


def test_airflow_loads_the_dag_folder(
    airflow_db: Path,
    pipelines: Path,
    pipeline_file: PipelineFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The errors are those of the other file: Airflow makes every Dag of a failing file stale."""
    pipeline_file("shop")
    (pipelines / "broken.yaml").write_text("pipeline_id: broken\nsource: {tabels: [a]}\n")
    monkeypatch.setenv("TIDEGATE_PIPELINES_DIR", str(pipelines))
    bag = DagBag(dag_folder=str(PROJECT / "dags"))
    assert sorted(bag.dags) == [f"shop__{kind}" for kind in KINDS]
    (failing,) = bag.import_errors
    assert Path(failing).name == "tidegate_pipeline_errors.py"
    assert "unknown key" in bag.import_errors[failing]


def test_without_a_broken_file_nothing_is_wrong(
    airflow_db: Path,
    pipelines: Path,
    pipeline_file: PipelineFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file that looks for errors must not own the Dags it builds on the way."""
    pipeline_file("shop")
    monkeypatch.setenv("TIDEGATE_PIPELINES_DIR", str(pipelines))
    bag = DagBag(dag_folder=str(PROJECT / "dags"))
    assert bag.import_errors == {}
    assert {Path(dag.fileloc).name for dag in bag.dags.values()} == {"tidegate_pipelines.py"}


def test_the_redrive_form_becomes_arguments_of_the_job(dags: dict[str, DAG]) -> None:
    dag = dags["shop__redrive"]
    assert dag.schedule is None
    params = {name: dag.params[name] for name in ("tables", "codes", "event_ids", "dry_run")}
    assert redrive_arguments(params) == ["--tables", "public.customers", "public.orders"]
    chosen = params | {"tables": ["public.orders"], "codes": ["apply.cast_failed"]}
    chosen |= {"event_ids": ["-7"], "dry_run": True}
    assert redrive_arguments(chosen) == [
        "--tables",
        "public.orders",
        "--dry-run",
        "--code=apply.cast_failed",
        "--event-id=-7",
    ]


def test_the_offsets_form_becomes_arguments_of_the_job(dags: dict[str, DAG]) -> None:
    params = dags["shop__offsets"].params.dump()
    form = {**params, "table": "public.orders", "position": "0/16B3748"}
    assert offset_arguments(form) == ["--tables", "public.orders", "--position=0/16B3748"]
    careful = {**form, "skip": True, "dry_run": True, "expect": "a/1", "reason": "-- why"}
    assert offset_arguments(careful)[3:] == [
        "--skip",
        "--dry-run",
        "--expect=a/1",
        "--reason=-- why",
    ]
