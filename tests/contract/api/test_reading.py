"""What can be read: states, pasts, rows; whole, in pages, again."""

from __future__ import annotations

import json
import re
import time
from functools import partial

import pytest
import yaml
from websockets.sync.client import connect

from tests.contract.api.test_access import filled, routes, socket_url
from tests.support.api import SECRET, TOKENS, Served
from tidegate.api.access import Role
from tidegate.api.readiness import look
from tidegate.control import gates
from tidegate.control.running import start, stop

LAG_FIELDS = {"topic", "partition", "lag", "offset"}
NO_LETTER = "00000000-0000-0000-0000-000000000000"
ORDERS = "/connectors/shop/tables/public.orders"


def test_pipelines_are_listed_with_their_state(api: Served) -> None:
    (shop,) = api.get("/connectors").json()["items"]
    assert (shop["name"], shop["state"], shop["deployed"]) == ("shop", "running", True)
    assert shop["gates"] == {"open": 1, "held": 1}
    assert (shop["dead_letters"], shop["needs"]) == (1, 1)


def test_a_broken_file_is_listed_and_named(own_api: Served) -> None:
    file = own_api.pipelines.directory / "bad.yaml"
    file.write_text("pipeline_id: bad\nsource: 7\n")
    bad, shop = own_api.get("/connectors").json()["items"]
    assert (bad["name"], bad["state"]) == ("bad", "broken") and bad["problem"]
    assert shop["state"] == "running"
    answer = own_api.get("/connectors/bad/status")
    assert answer.status_code == 422 and answer.json()["problems"]
    file.unlink()


def test_the_overview_has_figures_findings_and_lines(api: Served) -> None:
    (shop,) = api.get("/overview", Role.READ).json()["pipelines"]
    now = shop["overview"]
    assert (shop["name"], shop["problem"], now["tables"]) == ("shop", None, 2)
    assert (now["gates"], now["dead_letters"]) == ({"open": 1, "held": 1}, 1)
    found = {one["kind"]: one for one in now["findings"]}
    held = found["held"]
    assert (held["tables"], held["reason"]) == (["public.orders"], "look first")
    assert (held["actor"], held["action"], held["severity"]) == ("ann (cli)", "open", "warn")
    assert held["since"]
    assert (found["letters"]["letters"], found["letters"]["action"]) == (1, "letters")
    assert found["needs"]["reason"] == "a first sweep"
    (orders,) = [line for line in now["lines"] if line["table"] == "public.orders"]
    assert orders["state"] == "held" and {"held", "letters"} <= set(orders["conditions"])
    assert orders["activity"]["rows_day"] == 1  # a sweep's rows are no changes
    assert [bar[3] for bar in orders["activity"]["bars"]] == [3]
    rows = now["activity"]["rows"]
    assert len(rows) == 48 and rows.count(None) == 47, "a gap is no zero"


def test_a_broken_file_is_part_of_the_overview(own_api: Served) -> None:
    file = own_api.pipelines.directory / "wrong.yaml"
    file.write_text("pipeline_id: wrong\nsource: 7\n")
    deadline = time.monotonic() + 20
    try:
        while len(found := own_api.get("/overview").json()["pipelines"]) < 2:
            assert time.monotonic() < deadline, "an overview is some seconds old at most"
    finally:
        file.unlink()
    shop, wrong = found
    assert (wrong["name"], wrong["overview"]) == ("wrong", None)
    assert wrong["problem"]["code"] == "config.invalid" and shop["overview"]


def test_every_run_that_left_a_report_is_listed(api: Served) -> None:
    page = api.get("/connectors/shop/reports?limit=3", Role.READ).json()
    assert [run["kind"] for run in page["items"]] == ["maintain", "capture", "apply"]
    assert page["total"] == 4
    (swept,) = api.get(f"/connectors/shop/reports?limit=3&cursor={page['next']}").json()["items"]
    assert (swept["kind"], swept["outcome"], swept["rows"]) == ("sweep", "done", 3)
    assert swept["concerned"] == ["public.orders"]
    other = api.get("/connectors/shop/reports?table=public.nothing").json()
    assert other["items"] == []


def test_a_table_tells_why_compaction_is_not_due(api: Served) -> None:
    table = api.get(ORDERS).json()
    assert table["files"] == {"data_files": 2, "delete_files": 0, "bytes": 0} | {
        "bytes": table["files"]["bytes"],
        "snapshots": 2,
    }
    (compact,) = [step for step in table["upkeep"] if step["step"] == "compact"]
    assert compact["due"] is False and "due from" in compact["why"]
    assert table["status"]["gate"]["reason"] == "look first"


def test_the_timeline_is_newest_first_and_paged(api: Served) -> None:
    whole = api.get(f"{ORDERS}/timeline").json()
    kinds = [entry["kind"] for entry in whole["items"]]
    assert set(kinds) == {"gate", "maintain", "apply", "sweep", "schema"}
    times = [entry["at"] for entry in whole["items"]]
    assert times == sorted(times, reverse=True)
    seen, cursor = [], None
    while True:
        query = f"?limit=2&cursor={cursor}" if cursor else "?limit=2"
        part = api.get(f"{ORDERS}/timeline{query}").json()
        seen += part["items"]
        cursor = part["next"]
        if cursor is None:
            break
    assert seen == whole["items"]
    lost = api.get(f"{ORDERS}/timeline?cursor=gone")
    assert (lost.status_code, lost.json()["code"]) == (422, "api.cursor")


def test_snapshots_say_what_they_changed(api: Served) -> None:
    applied, swept = api.get(f"{ORDERS}/snapshots").json()["items"]
    assert (applied["step"], applied["updated"], applied["current"]) == ("apply", 1, True)
    assert (swept["step"], swept["inserted"], swept["rows"]) == ("sweep", 3, 3)
    assert isinstance(applied["snapshot_id"], str) and applied["parent_id"] == swept["snapshot_id"]


def test_series_have_a_point_per_snapshot(api: Served) -> None:
    first, last = api.get(f"{ORDERS}/series").json()["points"]
    assert first["at"] < last["at"]
    assert (first["rows"], first["rows_per_second"]) == (3, 1.5)


def test_a_rows_history_names_the_snapshot_of_each_change(api: Served) -> None:
    found = api.get(f"{ORDERS}/rows/2/history").json()
    paid, new = found["changes"]
    assert (paid["op"], paid["before"]["status"], paid["after"]["status"]) == ("u", "new", "paid")
    applied, swept = api.get(f"{ORDERS}/snapshots").json()["items"]
    assert (paid["snapshot_id"], new["snapshot_id"]) == (
        applied["snapshot_id"],
        swept["snapshot_id"],
    )
    assert api.get(f"{ORDERS}/rows/99/history").json()["changes"] == []
    wrong = api.get(f'{ORDERS}/rows/["1","2"]/history')
    assert (wrong.status_code, wrong.json()["code"]) == (422, "rows.wrong_key")


def test_the_schemas_of_a_table_are_told_with_their_changes(api: Served) -> None:
    found = api.get(f"{ORDERS}/schema").json()
    assert [row["number"] for row in found["history"]] == [1, 2]
    assert "note" in found["history"][1]["changes"][0]
    assert [column["name"] for column in found["columns"]] == ["id", "status", "note"]


def test_letters_show_their_row_to_those_who_may_see_rows(api: Served) -> None:
    (letter,) = api.get("/connectors/shop/dead-letters", Role.READ).json()["items"]
    assert letter["code"] == "apply.cast_failed" and "key" not in letter
    shown = api.get(f"/connectors/shop/dead-letters/{api.letter}", Role.EDIT).json()
    assert shown["after"] == {"id": "4", "status": "new", "note": "fragile"}
    facts = shown["headers"]
    assert len(facts) == 8 and all(name.startswith("dlq.") for name in facts)
    assert facts["dlq.source_topic"] == "cdc.public.orders" and facts["dlq.sink_id"] == "lake"
    gone = api.get(f"/connectors/shop/dead-letters/{NO_LETTER}")
    assert (gone.status_code, gone.json()["code"]) == (404, "dead_letters.unknown")


def test_what_is_unchanged_is_not_sent_again(api: Served) -> None:
    first = api.get(f"{ORDERS}/snapshots")
    tag = first.headers["etag"]
    again = api.get(f"{ORDERS}/snapshots", headers={"if-none-match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert api.get(f"{ORDERS}/snapshots", headers={"if-none-match": '"other"'}).status_code == 200


def test_problems_have_a_code_and_a_hint(api: Served) -> None:
    answer = api.get("/connectors/nothing/status")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "api.no_such_pipeline" and answer.json()["hint"]
    assert api.call("GET", "/no/such/path", TOKENS[Role.READ]).json()["code"] == "api.http_404"
    sent = api.post("/connectors/shop/gates/hold", {"reason": 7, "tables": "do-not-repeat"})
    assert sent.status_code == 422 and "do-not-repeat" not in sent.text


def test_every_response_has_the_security_headers(api: Served) -> None:
    for answer in (api.get("/connectors"), api.call("GET", "/healthz"), api.get("/connectors/x")):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_answer_holds_the_sources_password(api: Served) -> None:
    paths = [r.path for r in routes(api.app) if "GET" in getattr(r, "methods", ())]
    assert len(paths) > 20
    for path in paths:
        answer = api.call("GET", filled(path).replace(NO_LETTER, api.letter), TOKENS[Role.ADMIN])
        assert SECRET not in answer.text, path
    asked = api.get("/connectors/shop/status?source=true")
    assert asked.json()["source"]["reachable"] is False and SECRET not in asked.text


def test_health_says_more_to_those_who_are_known(api: Served) -> None:
    ready = api.call("GET", "/readyz")
    assert ready.status_code == 503, "the source of a pipeline at work is dead"
    assert ready.json() == {
        "status": "not ready",
        "components": {"catalog": "ok", "storage": "ok", "pipelines": "failed"},
    }
    told = api.get("/connectors/shop/health").json()
    parts = {part["name"]: part["status"] for part in told["components"]}
    assert parts["catalog"] == "ok" and parts["source"] == "failed"
    assert told["pipeline_id"] == "shop"
    assert told["source"] == {"connector": {"state": "FAILED"}, "tasks": [{"state": "RUNNING"}]}
    assert told["sinks"] == [{"sink_id": "lake", "status": "running"}]
    assert {lag["topic"] for lag in told["consumer_lag"]} == {
        "cdc.public.orders",
        "cdc.public.customers",
    }
    assert all(set(lag) == LAG_FIELDS for lag in told["consumer_lag"])


def test_a_pipeline_without_work_does_not_make_a_server_unready(own_api: Served) -> None:
    looked = partial(look, own_api.pipelines)
    assert looked()["pipelines"] == "failed"
    stop(own_api.pipeline, own_api.platform, reason="moving house")
    assert looked()["pipelines"] == "ok"
    file = own_api.pipelines.directory / "bad.yaml"
    file.write_text("pipeline_id: bad\nsource: 7\n")
    assert looked()["pipelines"] == "degraded"
    file.unlink()
    start(own_api.pipeline, own_api.platform, reason="seen")
    assert looked()["pipelines"] == "failed"


def test_the_socket_sends_everything_then_what_changed(own_api: Served) -> None:
    token = f"tidegate.token.{TOKENS[Role.READ]}"
    with connect(socket_url(own_api), subprotocols=["tidegate", token]) as socket:  # type: ignore[list-item]
        assert socket.subprotocol == "tidegate"
        first = json.loads(socket.recv(timeout=20))
        orders = first["pipelines"]["shop"]["status"]["tables"][1]
        assert (first["type"], orders["gate"]["state"]) == ("snapshot", "held")
        gates.open_gates(own_api.pipeline, own_api.platform, reason="seen", actor="ann")
        while True:
            told = json.loads(socket.recv(timeout=20))
            assert told["type"] == "change"
            if told["pipelines"]["shop"]["status"]["tables"][1]["gate"]["state"] == "open":
                break


def test_the_socket_tells_an_overview_and_then_only_the_lines_that_changed(
    own_api: Served,
) -> None:
    token = f"tidegate.token.{TOKENS[Role.READ]}"
    gates.hold(own_api.pipeline, own_api.platform, ["public.orders"], reason="one", actor="ann")
    url = f"{socket_url(own_api)}?view=overview"
    with connect(url, subprotocols=["tidegate", token]) as socket:  # type: ignore[list-item]
        first = json.loads(socket.recv(timeout=20))
        now = first["pipelines"]["shop"]["overview"]
        assert (first["type"], now["gates"]["held"], len(now["lines"])) == ("snapshot", 1, 2)
        gates.open_gates(own_api.pipeline, own_api.platform, reason="seen", actor="ann")
        while True:
            told = json.loads(socket.recv(timeout=20))
            assert told["type"] == "change"
            change = told["pipelines"]["shop"]
            assert "lines" not in change["overview"]
            assert set(change["lines"]) <= {"public.orders"}
            if change["overview"]["gates"] == {"open": 2}:
                assert change["lines"]["public.orders"]["gate"]["state"] == "open"
                break


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
def test_there_are_no_pages_of_the_frameworks_own(api: Served, path: str) -> None:
    assert api.call("GET", path, TOKENS[Role.ADMIN]).status_code == 404


def test_no_answer_shows_a_secret_of_a_file(
    own_api: Served, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may read the state may not read what opens other systems."""
    canary = "c4nary-never-shown"
    url = f"https://ann:{canary}@host/services?token={canary}#{canary}"
    hook = f"https://ann:{canary}@host/services/{canary}?token={canary}"
    config = yaml.safe_dump(
        {
            "pipeline_id": "planted",
            "owner": url,
            "tags": [url],
            "source": {
                "host": url,
                "database": url,
                "username": url,
                "password": canary,
                "tables": ["public.orders"],
                "options": {"api": {"key": canary}, "list": [canary]},
            },
            "sinks": [
                {
                    "sink_id": "hook",
                    "sink_type": "webhook",
                    "webhook": {"url": hook, "headers": {"Authorization": canary}},
                },
                {
                    "sink_id": "lake",
                    "sink_type": "iceberg",
                    "iceberg": {"properties": {"my.key": canary, "write.data.path": url}},
                },
            ],
        }
    )
    file = own_api.pipelines.directory / "planted.yaml"
    broken = own_api.pipelines.directory / "broken.yaml"
    file.write_text(config)
    broken.write_text(config.replace("planted", "broken") + f"{url!r}: 1\nschedules: '{url}'\n")
    try:
        answers = [
            own_api.get(path, Role.READ)
            for name in ("planted", "broken")
            for path in ("/connectors", f"/connectors/{name}", f"/connectors/{name}/status")
        ]
        answers += [own_api.post("/validate", {"config": f.read_text()}) for f in (file, broken)]
        answers += [
            own_api.post("/connectors", {"config": f.read_text(), "offline": True, "dry_run": True})
            for f in (file, broken)
        ]
        answers.append(own_api.post("/validate", {"name": "planted"}))
        with connect(
            own_api.url.replace("http", "ws") + "/api/v1/cdc/status",
            subprotocols=["tidegate", f"tidegate.token.{TOKENS[Role.READ]}"],  # type: ignore[list-item]
        ) as socket:
            told = str(socket.recv(timeout=30))
    finally:
        file.unlink()
        broken.unlink()
    shown = answers[1].json()["config"]
    assert shown["sinks"][0]["webhook"]["headers"] == {"Authorization": "(not shown)"}
    assert shown["sinks"][0]["webhook"]["url"] == "https://…@host/…"
    assert shown["source"]["password"] == "(not shown)"
    assert set(shown["source"]["options"]) == {"api", "list"}
    said = capfd.readouterr()
    texts = [*(a.text for a in answers), told, said.out, said.err, caplog.text]
    assert not [re.findall(f".{{0,200}}{canary}", text) for text in texts if canary in text]
