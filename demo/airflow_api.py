"""The few calls of Airflow's REST API the demo makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx

from tidegate.errors import RetriableError

FINAL_STATES: Final = frozenset({"success", "failed"})
_HEALTH: Final = {
    "metadatabase": "api-server",
    "scheduler": "scheduler",
    "triggerer": "triggerer",
    "dag_processor": "dag-processor",
}


class AirflowApi:
    def __init__(self, url: str, user: str, password: str) -> None:
        self._login = {"username": user, "password": password}
        # trust_env=False: a proxy of the environment has no business with loopback
        self._http = httpx.Client(base_url=url, timeout=30.0, trust_env=False)

    def healthy(self) -> set[str]:
        """Components that answer; none while the API server itself is starting."""
        try:
            parts = self._http.get("/api/v2/monitor/health", timeout=5.0).json()
        except (httpx.TransportError, ValueError):
            return set()
        return {
            name
            for part, name in _HEALTH.items()
            if (parts.get(part) or {}).get("status") == "healthy"
        }

    def wait_for_dags(self, dag_ids: set[str], seconds: float = 90.0) -> None:
        """Until the Dag processor has parsed them."""
        deadline = time.monotonic() + seconds
        missing = set(dag_ids)
        while missing:
            known = {dag["dag_id"] for dag in self._get("/api/v2/dags", limit=100)["dags"]}
            missing = dag_ids - known
            if missing and time.monotonic() > deadline:
                errors = self._get("/api/v2/importErrors")["import_errors"]
                reasons = "; ".join(error["stack_trace"].strip()[-300:] for error in errors)
                raise RetriableError(
                    "demo.dags_missing",
                    f"Airflow does not list {', '.join(sorted(missing))}: {reasons or 'no error'}",
                    hint="see the Dag processor's log",
                )
            time.sleep(0.5)  # polling the Dag processor

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> str:
        body = {"logical_date": None, "conf": conf or {}}
        answer: dict[str, Any] = self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body)
        return str(answer["dag_run_id"])

    def unpause(self, dag_id: str) -> None:
        self._call("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": False})

    def state(self, dag_id: str, run_id: str) -> str:
        return str(self._get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def tasks(self, dag_id: str, run_id: str) -> dict[str, str]:
        """State per task, mapped ones as ``task[index]``."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        return {_label(task): task["state"] or "none" for task in self._get(path)["task_instances"]}

    def follow(
        self, dag_id: str, run_id: str, seconds: float, meanwhile: Callable[[], None] | None = None
    ) -> Iterator[tuple[str, str]]:
        """Yield (task, state) at every change until the run ends; the last one is the run's own."""
        deadline = time.monotonic() + seconds
        seen: dict[str, str] = {}
        while True:
            state = self.state(dag_id, run_id)  # before the tasks: a final state means theirs are
            for task, now in self.tasks(dag_id, run_id).items():
                if seen.get(task) != now:
                    seen[task] = now
                    yield task, now
            if state in FINAL_STATES:
                yield dag_id, state
                return
            if time.monotonic() > deadline:
                raise RetriableError(
                    "demo.too_slow",
                    f"{dag_id} did not end within {seconds:.0f} s",
                    hint="open the run in the Airflow UI (make up) and read its task logs",
                )
            if meanwhile:
                meanwhile()
            time.sleep(0.5)  # polling the API server

    def _get(self, path: str, **params: Any) -> dict[str, Any]:
        return self._call("GET", path, params=params)

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        if "Authorization" not in self._http.headers:
            answer = self._http.post("/auth/token", json=self._login).raise_for_status()
            self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        response = self._http.request(method, path, **options)
        if response.is_error:
            raise RetriableError(
                "demo.airflow_api",
                f"{method} {path}: {response.status_code} {response.text[:300]}",
                hint="see the API server's log",
            )
        answer_body: dict[str, Any] = response.json()
        return answer_body


def _label(task: dict[str, Any]) -> str:
    index = task.get("map_index", -1)
    return str(task["task_id"]) if index < 0 else f"{task['task_id']}[{index}]"
