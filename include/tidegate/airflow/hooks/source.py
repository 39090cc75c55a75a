"""A source's secrets, from an Airflow connection or from the pipeline file's variables."""

from __future__ import annotations

from airflow.sdk import BaseHook
from airflow.sdk.log import mask_secret

from tidegate.config.loader import load_pipeline
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.secrets import Secrets


def source_secrets(pipeline_file: str) -> tuple[PipelineConfig, Secrets]:
    """Called in ``execute()`` only, never while a Dag is parsed (I9).

    With ``connection_id`` the connection comes from Airflow's secrets backend, and variables in the
    file need not be set.
    """
    pipeline = load_pipeline(pipeline_file, resolve_secrets=False)
    connection_id = pipeline.source.connection_id
    if connection_id is None:
        source = load_pipeline(pipeline_file).source
        secrets = Secrets(
            host=source.host, port=source.port, username=source.username, password=source.password
        )
    else:
        connection = BaseHook.get_connection(connection_id)
        secrets = Secrets.model_validate(
            {
                "host": connection.host,
                "port": connection.port,
                "username": connection.login,
                "password": connection.password,
            }
        )
    if secrets.password is not None:
        mask_secret(secrets.password.get_secret_value())
    return pipeline, secrets
