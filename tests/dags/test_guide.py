"""The hand-written Dag of the guide is a real one."""

from __future__ import annotations

import re
from pathlib import Path

from airflow.dag_processing.dagbag import DagBag

from tests.dags.conftest import PROJECT, PipelineFile

GUIDE = PROJECT / "docs" / "guides" / "editing-dags.md"


def test_the_guides_dag_loads(airflow_db: Path, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "shop_nightly.py").write_text(code)
    bag = DagBag(dag_folder=str(folder))
    assert bag.import_errors == {}
    dag = bag.dags["shop_nightly"]
    assert dag.get_task("verify").upstream_task_ids == {"apply_two", "apply_orders"}
    assert dag.get_task("apply_orders").upstream_task_ids == {"orders_open"}


def test_the_guide_names_every_generated_task(pipelines: Path, pipeline_file: PipelineFile) -> None:
    from tidegate.airflow.factory import build_dags

    pipeline_file("shop")
    text = GUIDE.read_text()
    for task in build_dags(pipelines)["shop__changes"].tasks:
        assert task.task_id in text
    for job in sorted((PROJECT / "spark_jobs").glob("*.py")):
        assert job.stem in text
