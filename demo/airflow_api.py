"""The few calls of Airflow's REST API the demo makes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import httpx

from tidegate.errors import RetriableError

SLOW_SECONDS: Final = 60.0
TRIES: Final = 5
RETURN_VALUE: Final = "return_value"
FINAL_STATES: Final = frozenset({"success", "failed"})
_HEALTH: Final = {
    "metadatabase": "api-server",
    "scheduler": "scheduler",
    "triggerer": "triggerer",
    "dag_processor": "dag-processor",
}


@dataclass(frozen=True, slots=True)
class Task:
    """One task instance; a mapped one is labelled ``task[index]``."""

    label: str
    state: str

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Task:
        index = entry.get("map_index", -1)
        label = entry["task_id"] if index < 0 else f"{entry['task_id']}[{index}]"
        return cls(label, entry["state"] or "none")


class AirflowApi:
    def __init__(self, url: str, user: str, password: str) -> None:
        self._login = {"username": user, "password": password}
        # trust_env=False: a proxy of the environment has no business with loopback
        self._http = httpx.Client(base_url=url, timeout=SLOW_SECONDS, trust_env=False)

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

    def tasks(self, dag_id: str, run_id: str) -> list[Task]:
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        return [Task.of(entry) for entry in self._get(path, limit=100)["task_instances"]]

    def returned(self, dag_id: str, run_id: str, label: str) -> Any:
        """A task's return value; None where it has none."""
        task, _, index = label.rstrip("]").partition("[")
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/xcomEntries"
        entries = self._get(path, map_index=index or -1)["xcom_entries"]
        if not any(entry["key"] == RETURN_VALUE for entry in entries):
            return None
        query = {"map_index": index or -1, "deserialize": True}
        return self._get(f"{path}/{RETURN_VALUE}", **query)["value"]

    def _get(self, path: str, **params: Any) -> dict[str, Any]:
        """Reading is safe to repeat, and a machine busy with Spark answers late."""
        for attempt in range(1, TRIES + 1):
            try:
                return self._call("GET", path, params=params)
            except httpx.TransportError as error:
                if attempt == TRIES:
                    raise RetriableError(
                        "demo.airflow_silent",
                        f"Airflow's API server does not answer: {type(error).__name__}",
                        hint="see the API server's log",
                    ) from error
        raise AssertionError("unreachable")

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
