"""The task that tells a schema registry: skipped with the reason where that does not answer."""

from __future__ import annotations

from pathlib import Path

from tests.dags.conftest import Airflow, PipelineFile
from tests.support.changes import number, schema
from tests.support.odd_registry import odd_registry
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.envelope.position import boundary
from tidegate.lake.catalog import open_catalog
from tidegate.lake.schema_history import SchemaHistory

CANARY = "canary-60f2"

DAG_FILE = """
from airflow.sdk import DAG
from tidegate.airflow.operators.register import TidegateRegisterOperator

with DAG("probe", schedule=None):
    TidegateRegisterOperator(
        task_id="register_schemas", pipeline_file={pipeline!r}, platform_file={platform!r}
    )
"""


def test_a_failing_registry_fails_nothing_and_its_password_is_kept_nowhere(
    airflow: Airflow, pipeline_file: PipelineFile, platform_file: Path
) -> None:
    file = pipeline_file("shop")
    pipeline = load_pipeline(file, resolve_secrets=False)
    catalog = open_catalog(load_platform(platform_file), pipeline)
    known = schema("public.orders", number("id", key=0))
    SchemaHistory(catalog, pipeline).record(known, boundary("e1", 10))
    catalog.close()
    with odd_registry() as odd:
        odd.says(503, {"message": CANARY})
        platform_file.write_text(
            f"{platform_file.read_text()}"
            f"schema_registry: {{enabled: true, url: '{odd.url}', token: '${{REGISTRY_TOKEN}}',"
            " timeout_seconds: 60}\n"
        )
        (airflow.dags / "probe.py").write_text(
            DAG_FILE.format(pipeline=str(file), platform=str(platform_file))
        )
        run = airflow.run("probe", TIDEGATE_TEST_PASSWORD=CANARY, REGISTRY_TOKEN=CANARY)
        assert odd.headers[0]["Authorization"] == f"Bearer {CANARY}", run.output
    assert run.tasks == {"register_schemas": "skipped"} and run.state == "success", run.output
    assert "[registry.failing]" in run.output and "The next run tries again" in run.output
    assert CANARY not in run.output + airflow.everything_stored()
