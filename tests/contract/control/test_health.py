"""Health and doctor: every part is looked at, whatever the others say."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shop import ORDERS, Shop
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import LakeConfig, PlatformConfig
from tidegate.control import doctor as control_doctor
from tidegate.control.doctor import doctor
from tidegate.control.gates import hold, open_gates
from tidegate.control.health import AIRFLOW_VARIABLE, Component, document, health
from tidegate.control.running import stop
from tidegate.errors import FatalError
from tidegate.jobs.apply_result import ApplyResult, Status, TableResult
from tidegate.jobs.result import plain
from tidegate.lake.reports import Reports


@pytest.fixture(autouse=True)
def no_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(AIRFLOW_VARIABLE, raising=False)


@pytest.fixture
def away(pipeline: PipelineConfig) -> PipelineConfig:
    """A pipeline whose source does not answer."""
    source = pipeline.source.model_copy(update={"host": "127.0.0.1", "port": 1})
    return pipeline.model_copy(update={"source": source})


@pytest.fixture
def airflow() -> Iterator[tuple[str, dict[str, object]]]:
    """A server that answers as Airflow's health endpoint does, and what it answers."""
    answer: dict[str, object] = {
        "metadatabase": {"status": "healthy"},
        "scheduler": {"status": "healthy"},
        "triggerer": {"status": None},
    }

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/base/api/v2/monitor/health"
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/base/", answer
        server.shutdown()
        thread.join()


def parts(components: tuple[Component, ...]) -> dict[str, str]:
    return {component.name: component.status for component in components}


def test_the_platform_alone_has_a_catalog_and_a_storage(platform: PlatformConfig) -> None:
    found = health(platform)
    assert parts(found.components) == {"catalog": "ok", "storage": "ok"}
    assert found.ok and found.pipeline_id is None
    warehouse = Path(platform.lake.home) / "warehouse"
    assert not [left for left in warehouse.rglob("*") if left.is_file()], "no probe stays"


def test_a_source_that_is_away_fails_and_hides_nothing(
    shop: Shop, platform: PlatformConfig, away: PipelineConfig
) -> None:
    stop(away, platform, reason="moving house")
    hold(away, platform, ["orders"], reason="a look", actor="ann")
    found = health(platform, away)
    assert parts(found.components) == {
        "catalog": "ok",
        "storage": "ok",
        "source": "failed",
        "change_log": "degraded",
        "writers": "ok",
        "gates": "degraded",
    }
    assert found.status == "failed" and not found.ok
    assert plain(found.source) == {
        "connector": {"state": "FAILED"},
        "tasks": [{"state": "PAUSED"}],
    }
    said = {component.name: component for component in found.components}
    assert "moving house" in said["change_log"].detail
    assert "a look" in said["gates"].detail and said["gates"].hint


def test_health_has_the_specifications_form(
    shop: Shop, platform: PlatformConfig, away: PipelineConfig
) -> None:
    at = shop.capture()
    shop.stands(ORDERS, [at])
    shop.orders.insert("1", "x", None)
    shop.orders.commit()
    shop.capture()
    sink = {"sink_id": "iceberg-lake", "sink_type": "iceberg", "iceberg": {}}
    off = {"sink_id": "off", "sink_type": "iceberg", "enabled": False, "iceberg": {}}
    text = away.model_dump() | {"sinks": [sink, off], "topic_prefix": "acme"}
    told = plain(document(health(platform, PipelineConfig.model_validate(text))))
    assert {name: told[name] for name in ("pipeline_id", "source", "sinks", "consumer_lag")} == {
        "pipeline_id": "shop",
        "source": {"connector": {"state": "FAILED"}, "tasks": [{"state": "RUNNING"}]},
        "sinks": [{"sink_id": "iceberg-lake", "status": "running"}],
        "consumer_lag": [
            {"topic": "acme.public.customers", "partition": 0, "lag": None, "offset": None},
            {"topic": "acme.public.orders", "partition": 0, "lag": 0x10, "offset": at.lsn},
        ],
    }
    assert (told["status"], told["components"][0]["name"]) == ("failed", "catalog")


def test_a_writer_that_failed_is_failed_until_it_wrote_or_somebody_holds_its_table(
    shop: Shop, platform: PlatformConfig, away: PipelineConfig
) -> None:
    at = shop.capture()
    shop.stands(ORDERS, [at])
    shop.orders.insert("1", "x", None)
    shop.orders.commit()
    later = shop.capture()

    def writers() -> tuple[str, str, str | None, str]:
        found = health(platform, away)
        (part,) = [part for part in found.components if part.name == "writers"]
        return part.status, part.detail, part.hint, found.sinks[0].status

    error = FatalError("apply.broken", "the writer broke", hint="mend it")
    failed = ApplyResult("r1", [TableResult(ORDERS, Status.FAILED, error=error)])
    reports = Reports(shop.catalog, away)
    reports.add("apply", "r1", plain(failed))
    assert writers() == ("failed", f"{ORDERS}: the writer broke", "mend it", "failed")
    hold(away, platform, ["orders"], reason="a look", actor="ann")
    assert writers()[0] == "ok", "the gate says what is wrong"
    open_gates(away, platform, ["orders"], reason="seen", actor="ann")
    assert writers()[0] == "failed"
    shop.stands(ORDERS, [later])
    assert writers()[0] == "ok"
    assert writers()[3] == "running"


def test_a_storage_that_cannot_be_written_is_failed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    lake = LakeConfig(home=str(tmp_path / "home"), warehouse=str(tmp_path / "file" / "inside"))
    found = health(PlatformConfig(lake=lake))
    assert parts(found.components) == {"catalog": "ok", "storage": "failed"}


def test_airflow_counts_where_it_is_configured(
    platform: PlatformConfig,
    airflow: tuple[str, dict[str, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, answer = airflow
    monkeypatch.setenv(AIRFLOW_VARIABLE, url)
    assert parts(health(platform).components)["airflow"] == "ok"
    answer["triggerer"] = {"status": "unhealthy"}
    assert parts(health(platform).components)["airflow"] == "degraded"
    answer["scheduler"] = {"status": "unhealthy"}
    found = health(platform).components[-1]
    assert found.status == "failed" and "scheduler, triggerer" in found.detail
    monkeypatch.setenv(AIRFLOW_VARIABLE, "http://127.0.0.1:1")
    assert parts(health(platform).components)["airflow"] == "failed"


def test_the_doctor_looks_at_everything_and_says_the_fix(
    platform: PlatformConfig, away: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {check.name: check for check in doctor(platform, away).checks}
    assert [*found] == [
        "java",
        "spark",
        "jars",
        "ports",
        "disk",
        "catalog",
        "storage",
        "source",
        "airflow",
    ]
    assert found["java"].status == found["spark"].status == "ok", found["java"]
    assert found["source"].status == "failed" and found["source"].fix
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(control_doctor, "DISK_AT_LEAST", 10**18)
    worse = doctor(platform)
    found = {check.name: check for check in worse.checks}
    assert not worse.ok
    assert found["java"].status == "failed" and "JAVA_HOME" in str(found["java"].fix)
    assert (found["disk"].status, found["source"].status) == ("warn", "skipped")


def test_the_doctor_sees_a_port_that_is_taken(platform: PlatformConfig) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        busy = platform.model_copy(update={"health_port": server.server_port})
        found = {check.name: check for check in doctor(busy).checks}
    assert found["ports"].status == "warn" and str(busy.health_port) in found["ports"].detail
