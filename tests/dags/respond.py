"""Answer what a Dag asks, through Airflow's own API, as a user who signed in.

``python -m tests.dags.respond <dag_id> <answers as JSON>``: a list of {"map_index", "options",
"params"}; an answer whose options are null lets the time run out, by the scheduler's own sweep. It
waits until as many questions are open as there are answers. The last line is JSON: the questions.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from airflow.api_fastapi.app import create_app
from fastapi.testclient import TestClient

WAIT_SECONDS = 240.0


def main(dag_id: str, text: str) -> None:
    answers = json.loads(text)
    with TestClient(create_app()) as client:
        body = {"username": "ann", "password": "only-for-tests"}
        token = client.post("/auth/token", json=body).json()["access_token"]
        signed = {"Authorization": f"Bearer {token}"}
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        asked = _open_questions(client, path, signed, len(answers))
        run = asked[0]["task_instance"]["dag_run_id"]
        for answer in answers:
            if answer["options"] is None:
                _time_runs_out(dag_id, run, answer["map_index"])
                continue
            answered = client.patch(
                f"{path}/{run}/taskInstances/approve/{answer['map_index']}/hitlDetails",
                json={"chosen_options": answer["options"], "params_input": answer["params"]},
                headers=signed,
            )
            assert answered.status_code == 200, answered.text
    shown = [
        {"table": one["task_instance"]["rendered_map_index"]}
        | {name: one[name] for name in ("subject", "body", "options", "params")}
        for one in asked
    ]
    print(json.dumps(shown))


def _open_questions(
    client: TestClient, path: str, signed: dict[str, str], wanted: int
) -> list[dict[str, Any]]:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        answer = client.get(
            f"{path}/~/hitlDetails",
            params={"response_received": False, "state": "awaiting_input"},
            headers=signed,
        )
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["hitl_details"]
        if len(found) == wanted:
            return sorted(found, key=lambda one: one["task_instance"]["map_index"])
        assert time.monotonic() < deadline, found
        time.sleep(0.5)  # polling a Dag run in another process


def _time_runs_out(dag_id: str, run_id: str, map_index: int) -> None:
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.taskinstance import TaskInstance
    from airflow.sdk.timezone import utcnow
    from airflow.utils.session import create_session

    with create_session() as session:
        ti = (
            session.query(TaskInstance)
            .filter_by(dag_id=dag_id, run_id=run_id, task_id="approve", map_index=map_index)
            .one()
        )
        assert ti.trigger_timeout > utcnow(), "the wait has an end"
        ti.trigger_timeout = utcnow()
    SchedulerJobRunner(job=Job()).check_awaiting_input_timeouts()


if __name__ == "__main__":
    main(*sys.argv[1:])
