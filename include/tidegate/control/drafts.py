"""A pipeline's file in the making: what the source offers, and the text to begin with (I10)."""

from __future__ import annotations

from dataclasses import dataclass

import yaml
from pydantic import SecretStr, ValidationError

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.source import SourceConfig
from tidegate.connectors.protocol import AvailableTable, ListsTables
from tidegate.connectors.registry import open_source
from tidegate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known of a pipeline to be. The password is never written: the file names a variable
    that holds it (I9)."""

    pipeline_id: str
    host: str
    port: int
    database: str
    username: str
    password_variable: str
    tables: tuple[str, ...] = ()
    source_type: str = "postgres"


@dataclass(frozen=True, slots=True)
class Offer:
    """The source as it answered."""

    system: str
    tables: tuple[AvailableTable, ...]


def look(draft: Draft, password: str, platform: PlatformConfig) -> Offer:
    """Connect and list what can be taken; changes nothing."""
    source = open_source(_pipeline(draft, password), platform)
    try:
        info = source.open()
        found = source.available() if isinstance(source, ListsTables) else ()
    finally:
        source.close()
    return Offer(info.system, found)


def text(draft: Draft, offer: Offer | None = None) -> str:
    """The file, commented; it loads as it is."""
    _pipeline(draft, "")  # refuse what no file may say
    keyless = {t.table for t in offer.tables if not t.keyed} if offer else set()
    others = [t.table for t in offer.tables if t.table not in draft.tables] if offer else []
    lines = [
        "# One source and the tables taken from it. Every key: docs/reference/configuration.md",
        f"# tidegate validate {draft.pipeline_id}.yaml    is it right, is the source ready?",
        f"# tidegate create {draft.pipeline_id}.yaml      put it into the pipelines folder",
        "version: 1",
        f"pipeline_id: {draft.pipeline_id}  # names Dags, the slot and the Iceberg namespaces",
        "",
        "source:",
        f"  source_type: {draft.source_type}",
        f"  host: {_scalar(draft.host)}",
        f"  port: {draft.port}",
        f"  database: {_scalar(draft.database)}",
        f"  username: {_scalar(draft.username)}  # needs LOGIN, REPLICATION and SELECT",
        f"  password: ${{{draft.password_variable}}}  # from the environment, never in the file",
        "  # connection_id: shop_db   # an Airflow connection in place of the four above",
        "  # sslmode: verify-full",
        f"  tables:{'' if draft.tables else ' []'}",
        *(f"    - {_table(name, keyless)}" for name in draft.tables),
        *(f"    # - {_table(name, keyless)}" for name in others),
        "",
        "# sinks:                       # without an entry the lake's defaults apply",
        "#   - sink_id: lake",
        "#     sink_type: iceberg",
        "#     iceberg:",
        "#       write_mode: upsert      # or append (every change a row), history (SCD2)",
        "#       partition_by: [day(created_at)]",
        "",
        "# schedules:                   # of the generated Dags; null = only by hand",
        '#   changes: "*/5 * * * *"',
    ]
    return "\n".join(lines) + "\n"


def _table(name: str, keyless: set[str]) -> str:
    note = "  # no primary key: docs/guides/tables-without-a-key.md" if name in keyless else ""
    return f"{_scalar(name)}{note}"


def _scalar(text: str) -> str:
    """As YAML writes it: quoted where it must be."""
    return yaml.safe_dump(text, default_flow_style=True, width=1000).removesuffix("...\n").strip()


def _pipeline(draft: Draft, password: str) -> PipelineConfig:
    try:
        return PipelineConfig(
            pipeline_id=draft.pipeline_id,
            source=SourceConfig(
                source_type=draft.source_type,
                host=draft.host,
                port=draft.port,
                database=draft.database,
                username=draft.username,
                password=SecretStr(password),
                tables=draft.tables,
            ),
        )
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
            for one in error.errors(include_input=False)
        )
        raise ConfigError(
            "init.answer", f"this makes no pipeline: {told}", hint="give another answer"
        ) from None  # the cause would quote the password (I9)
