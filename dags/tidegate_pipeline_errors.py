"""No Dag: pipeline files that cannot be loaded become this file's Airflow import error."""

from pathlib import Path

from tidegate.airflow.factory import pipelines_dir, platform_path, raise_problems

PROJECT = Path(__file__).absolute().parents[1]

raise_problems(pipelines_dir(PROJECT), platform_path(PROJECT))
