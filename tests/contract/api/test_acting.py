"""What can be done: gates, letters, schemas, pipelines, and work that is started once."""

from __future__ import annotations

import pytest

from tests.support.api import PIPELINE, SECRET, TOKENS, Served
from tidegate.api.access import Role
from tidegate.control import gates

SHOP = "/connectors/shop"
KEY = {"idempotency-key": "one-and-the-same"}


def test_a_gate_is_opened_and_held_in_the_callers_name(own_api: Served) -> None:
    opened = own_api.post(f"{SHOP}/gates/open", {"reason": "seen", "tables": ["public.orders"]})
    assert opened.json()["gates"][0]["state"] == "open"
    own_api.post(f"{SHOP}/gates/hold", {"reason": "again"}, Role.EDIT)
    shown = gates.show(own_api.pipeline, own_api.platform)
    assert {(g.state, g.actor, g.reason) for g in shown.gates} == {
        ("held", "editer (api)", "again")
    }
    entry = own_api.get(f"{SHOP}/audit").json()[0]
    assert (entry["action"], entry["actor"], entry["surface"]) == ("hold", "editer", "api")


def test_an_unknown_table_is_refused_before_anything_is_done(own_api: Served) -> None:
    before = own_api.get(f"{SHOP}/runs").json()
    for path, body in (
        ("gates/hold", {"reason": "x", "tables": ["public.nope"]}),
        ("snapshot", {"tables": ["public.nope"]}),
        ("dead-letters/redrive", {"tables": ["public.nope"]}),
    ):
        answer = own_api.post(f"{SHOP}/{path}", body)
        assert (answer.status_code, answer.json()["code"]) == (404, "control.unknown_table")
    assert own_api.get(f"{SHOP}/runs").json() == before


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("gates/open", {"reason": "x", "tables": []}),
        ("gates/hold", {"reason": "x", "abandon": True}),
        ("dead-letters/discard", {"event_ids": []}),
        ("snapshot", {"dry_run": 0}),
        ("snapshot", {"tables": ["public.orders"], "where": "id > 1\0"}),
    ],
)
def test_a_near_miss_is_refused_and_not_taken_for_all(api: Served, path: str, body: object) -> None:
    answer = api.post(f"{SHOP}/{path}", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "api.invalid_request")


def test_letters_are_discarded_after_a_look(own_api: Served) -> None:
    body = {"event_ids": [own_api.letter], "dry_run": True}
    look = own_api.post(f"{SHOP}/dead-letters/discard", body).json()
    assert (look["discarded"], len(look["letters"])) == (False, 1)
    done = own_api.post(f"{SHOP}/dead-letters/discard", {"event_ids": [own_api.letter]}).json()
    assert done["discarded"] is True
    assert own_api.get(f"{SHOP}/dead-letters").json()["total"] == 0


def test_nothing_is_approved_where_nothing_is_held(own_api: Served) -> None:
    answer = own_api.post(f"{SHOP}/tables/public.customers/schema/approve", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "schema.nothing_held")


def test_the_same_key_starts_work_once(own_api: Served) -> None:
    before = len(own_api.get(f"{SHOP}/runs").json())
    body = {"tables": ["public.orders"], "dry_run": True}
    first = own_api.post(f"{SHOP}/snapshot", body, headers=KEY)
    assert first.status_code == 202 and first.json()["state"] == "queued"
    again = own_api.post(f"{SHOP}/snapshot", body, headers=KEY)
    assert again.json()["id"] == first.json()["id"]
    theirs = own_api.post(f"{SHOP}/snapshot", body, Role.EDIT, headers=KEY).json()
    assert (theirs["started_by"], theirs["id"] != first.json()["id"]) == ("editer (api)", True)
    other = own_api.post(f"{SHOP}/snapshot", {"tables": ["public.customers"]}, headers=KEY)
    assert (other.status_code, other.json()["code"]) == (409, "api.idempotency_key")
    verb = own_api.post(f"{SHOP}/verify", {}, headers=KEY)
    assert verb.status_code == 409
    assert own_api.post(f"{SHOP}/snapshot", body).json()["id"] != first.json()["id"]
    run = own_api.get(f"{SHOP}/runs/{first.json()['id']}").json()
    assert (run["verb"], run["started_by"]) == ("sweep", "adminer (api)")
    assert len(own_api.get(f"{SHOP}/runs").json()) == before + 3
    assert own_api.get(f"{SHOP}/runs/none").json()["code"] == "api.no_such_run"


def test_a_rollback_names_a_snapshot_that_is_there(own_api: Served) -> None:
    path = f"{SHOP}/tables/public.orders/rollback"
    gone = own_api.post(path, {"snapshot_id": "42"})
    assert (gone.status_code, gone.json()["code"]) == (404, "lakehouse.no_snapshot")
    _, swept = own_api.get(f"{SHOP}/tables/public.orders/snapshots").json()["items"]
    run = own_api.post(path, {"snapshot_id": swept["snapshot_id"], "dry_run": True}).json()
    assert run["options"]["snapshot_id"] == swept["snapshot_id"]


def test_a_pipeline_is_stopped_and_started(own_api: Served) -> None:
    stopped = own_api.post(f"{SHOP}/stop", {"reason": "upgrade"}).json()
    assert (stopped["state"], stopped["changed"]) == ("stopped", True)
    assert own_api.get("/connectors").json()["items"][0]["state"] == "stopped"
    assert own_api.get(f"{SHOP}/status").json()["running"]["reason"] == "upgrade"
    started = own_api.call("POST", f"/api/v1/cdc{SHOP}/start", TOKENS[Role.EDIT]).json()
    assert (started["state"], started["actor"]) == ("running", "editer")


def test_a_pipeline_is_made_once_and_deleted(own_api: Served) -> None:
    config = PIPELINE.replace("pipeline_id: shop", "pipeline_id: second")
    body = {"config": config, "offline": True}
    planned = own_api.post("/connectors", {**body, "dry_run": True})
    assert (planned.status_code, planned.json()["status"]) == (200, "planned")
    made = own_api.post("/connectors", body)
    assert (made.status_code, made.json()["status"]) == (201, "created")
    assert SECRET not in made.text
    taken = own_api.post("/connectors", body)
    assert (taken.status_code, taken.json()["code"]) == (409, "pipelines.exists")
    gone = own_api.call("DELETE", "/api/v1/cdc/connectors/second", TOKENS[Role.ADMIN])
    assert gone.json()["status"] == "deleted"
    kept = own_api.call("DELETE", f"/api/v1/cdc{SHOP}", TOKENS[Role.ADMIN])
    assert (kept.status_code, kept.json()["code"]) == (409, "pipelines.deployed")


def test_a_file_is_validated_without_this_servers_variables(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SECRET", SECRET)
    config = PIPELINE.replace("host: 127.0.0.1", "host: ${SERVER_SECRET}")
    answer = api.post("/validate", {"config": config})
    assert answer.json()["ok"] is True and answer.json()["source_checked"] is False
    assert SECRET not in answer.text
    broken = api.post("/validate", {"config": "pipeline_id: [\n"})
    assert broken.status_code == 422 and broken.json()["code"].startswith("config.")
    assert api.post("/validate", {}).status_code == 422
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]" for n in range(1, 12))]
    bomb = api.post("/validate", {"config": "\n".join(lines)})
    assert (bomb.status_code, bomb.json()["problems"][0]["line"]) == (422, 1)


def test_moving_a_position_is_planned_before_it_is_done(own_api: Served) -> None:
    orders = own_api.get(f"{SHOP}/offsets").json()["tables"][1]
    body = {"table": "public.orders", "position": orders["position"]}
    plan = own_api.post(f"{SHOP}/offsets/plan", body, Role.READ).json()
    assert (plan["direction"], plan["changes"]) == ("none", 0)
    run = own_api.call("PUT", f"/api/v1/cdc{SHOP}/offsets", TOKENS[Role.ADMIN], json=body)
    assert (run.status_code, run.json()["verb"]) == (202, "set offset")
    wrong = own_api.post(f"{SHOP}/offsets/plan", {**body, "position": "nowhere"})
    assert wrong.status_code == 422
    before = {**body, "expect": orders["lowest"]}
    late = own_api.call("PUT", f"/api/v1/cdc{SHOP}/offsets", TOKENS[Role.ADMIN], json=before)
    assert (late.status_code, late.json()["code"]) == (409, "offsets.moved")
