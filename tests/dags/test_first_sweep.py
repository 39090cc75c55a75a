"""Tables without a lake table start the sweep Dag: once, and not while it is under way."""

from __future__ import annotations

from tests.dags.conftest import Airflow

DAG_FILE = """
from airflow.sdk import DAG, task
from tidegate.airflow.operators.first_sweep import FirstSweepOperator

with DAG("probe__changes", schedule=None):
    @task
    def apply_open(params):
        return {{"tables": [
            {{"table": "public.a", "status": "applied"}},
            {{"table": "public.b", "status": {status!r}}},
        ]}}

    FirstSweepOperator(
        task_id="first_sweep", trigger_dag_id="probe__sweep", applied=apply_open(), retries=0,
        fail_when_dag_is_paused=True,
    )

with DAG("probe__sweep", schedule=None, is_paused_upon_creation={paused}):
    @task
    def sweep():
        pass

    sweep()
"""


def write(airflow: Airflow, *, status: str = "missing", paused: bool = False) -> None:
    (airflow.dags / "probe.py").write_text(DAG_FILE.format(status=status, paused=paused))


def test_a_missing_table_starts_the_sweep_dag_once(airflow: Airflow) -> None:
    write(airflow)
    run = airflow.run("probe__changes")
    assert run.tasks["first_sweep"] == "success", run.output
    assert "First sweep of public.b" in run.output
    assert "first load" in airflow.everything_stored()  # the triggered run's conf
    again = airflow.run("probe__changes")
    assert again.tasks["first_sweep"] == "skipped", again.output
    assert "public.b await their first sweep; probe__sweep is under way" in again.output


def test_nothing_missing_starts_nothing(airflow: Airflow) -> None:
    write(airflow, status="unchanged")
    run = airflow.run("probe__changes")
    assert run.tasks["first_sweep"] == "skipped"
    assert "Every table has its lake table" in run.output


def test_a_paused_sweep_dag_is_said_in_red(airflow: Airflow) -> None:
    write(airflow, paused=True)
    run = airflow.run("probe__changes")
    assert run.tasks["first_sweep"] == "failed"
    assert "probe__sweep is paused" in run.output
