"""Airflow Dags of every pipeline in include/config/pipelines (or TIDEGATE_PIPELINES_DIR)."""

from pathlib import Path

from tidegate.airflow.factory import build_dags, pipelines_dir, platform_path

PROJECT = Path(__file__).absolute().parents[1]

globals().update(build_dags(pipelines_dir(PROJECT), platform_path(PROJECT)))
