"""What can be done: gates, letters, schemas, pipelines, and work that is started once."""

from __future__ import annotations

import socket
import tempfile

import pytest
import yaml

from tests.support.api import PIPELINE, SECRET, TOKENS, Served
from tidegate.api.access import Role
from tidegate.api.posted import allowed_variables
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
    idle = PIPELINE + "sinks: [{sink_id: x, sink_type: iceberg, iceberg: {batch_size: 9}}]\n"
    (found,) = api.post("/validate", {"config": idle}).json()["findings"]
    assert (found["code"], found["severity"]) == ("config.without_effect", "info")
    broken = api.post("/validate", {"config": "pipeline_id: [\n"})
    assert broken.status_code == 422 and broken.json()["code"].startswith("config.")
    assert api.post("/validate", {}).status_code == 422
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]" for n in range(1, 12))]
    bomb = api.post("/validate", {"config": "\n".join(lines)})
    assert (bomb.status_code, bomb.json()["problems"][0]["line"]) == (422, 1)


@pytest.mark.parametrize("place", ["password", "username", "database", "tables"])
@pytest.mark.parametrize("offline", [False, True])
def test_a_posted_file_does_not_take_the_servers_variables_away(
    own_api: Served, monkeypatch: pytest.MonkeyPatch, place: str, offline: bool
) -> None:
    monkeypatch.setenv("SERVER_SECRET", SECRET)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        source = {"host": "127.0.0.1", "port": stranger.getsockname()[1], "database": "d"}
        source |= {"password": "x", "tables": ["public.orders"]}
        for written in ("${SERVER_SECRET}", "x${SERVER_SECRET:-y}"):
            value = [f'public."{written}"'] if place == "tables" else written
            config = yaml.safe_dump({"pipeline_id": "taker", "source": source | {place: value}})
            answer = own_api.post("/connectors", {"config": config, "offline": offline})
            assert answer.status_code == 422 and answer.json()["problems"][0]["line"], answer.text
            assert "SERVER_SECRET" in answer.json()["problems"][0]["message"]
            looked = own_api.post("/validate", {"config": config})
            assert SECRET not in answer.text + looked.text
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()  # nobody came
    assert "taker" not in own_api.get("/connectors").text


def test_variables_that_are_meant_for_it_are_a_posted_files(
    own_api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = PIPELINE.replace("shop", "third").replace(SECRET, "${%s}")
    body = {"config": config % "TIDEGATE_SOURCE_THIRD", "offline": True, "dry_run": True}
    assert own_api.post("/connectors", body).json()["status"] == "planned"
    other = {**body, "config": config % "THIRD_PASSWORD"}
    assert own_api.post("/connectors", other).status_code == 422
    monkeypatch.setenv("TIDEGATE_API_VARIABLES", "THIRD_*, OTHERS")
    monkeypatch.setattr(own_api.pipelines, "allowed_variables", allowed_variables())
    assert own_api.post("/connectors", other).json()["status"] == "planned"
    assert own_api.post("/connectors", body).status_code == 422


def test_a_posted_file_does_not_say_where_a_connections_password_goes(own_api: Served) -> None:
    config = PIPELINE.replace(f"password: {SECRET}", "connection_id: shop_db")
    answer = own_api.post("/connectors", {"config": config, "offline": True, "dry_run": True})
    assert [p["path"] for p in answer.json()["problems"]] == ["source.host", "source.port"]


def test_no_refusal_names_a_path_of_the_server(own_api: Served) -> None:
    folder = own_api.pipelines.directory
    broken = folder / "broken.yaml"
    broken.write_text("pipeline_id: broken\nsource: 7\n")
    new = PIPELINE.replace("pipeline_id: shop", "pipeline_id: fourth")
    relative = new.replace("host:", "sslrootcert: ca.pem\n  host:")
    try:
        answers = [
            own_api.post("/validate", {"config": "pipeline_id: [\n"}),
            own_api.post("/validate", {"config": "source: 7\n"}),
            *(
                own_api.post("/connectors", {"config": config, "offline": offline})
                for config, offline in (("source: 7", True), (new, False), (relative, True))
            ),
            own_api.post("/connectors", {"config": PIPELINE, "offline": True}),
            own_api.get("/connectors/broken"),
            own_api.get("/connectors"),
            own_api.get(f"{SHOP}/audit"),
        ]
    finally:
        broken.unlink()
    assert [a.status_code for a in answers] == [422, 422, 422, 503, 422, 409, 422, 200, 200], [
        a.text for a in answers
    ]
    for answer in answers:
        for place in (folder.parent, tempfile.gettempdir(), own_api.platform.lake.home):
            assert f"{place}/" not in answer.text and f'{place}"' not in answer.text, answer.text
    assert "pipeline.yaml:2" in answers[0].json()["detail"]
    assert answers[6].json()["problems"][0]["file"] == "broken.yaml"


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
