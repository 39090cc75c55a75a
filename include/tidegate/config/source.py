"""``source:``: the database a pipeline captures from. Keys follow the platform specification."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from tidegate.config import source_types
from tidegate.config.base import Issue, Section, WrongTogether
from tidegate.errors import ConfigError
from tidegate.names import TableId

CONNECT_TIMEOUT_SECONDS: Final = 10
"""Longer than any healthy connect, short enough that a wrong host is noticed at once."""


MYSQL_PORT: Final = 3306


class SnapshotMode(StrEnum):
    """Whether tables without a lake table are swept before their increments flow."""

    INITIAL = "initial"
    NEVER = "never"


def _table(value: str) -> str:
    try:
        return str(TableId.parse(value))
    except ConfigError as error:  # pydantic collects ValueErrors only
        raise ValueError(f"{error.message}: {error.hint}") from error


TableName = Annotated[str, AfterValidator(_table)]


class SourceConfig(Section):
    """Where the changes come from."""

    source_type: Annotated[str, AfterValidator(source_types.check)] = Field(
        source_types.POSTGRES,
        description="Kind of source database: postgres, mysql, or the name of a connector that a"
        " package brings.",
    )
    connection_id: str | None = Field(
        None,
        description="Airflow connection that replaces host, port, username and password; outside"
        " Airflow it is read from AIRFLOW_CONN_<ID>.",
    )
    host: str = Field("localhost", description="Database host.")
    port: int = Field(5432, ge=1, le=65535, description="Database port; 3306 by default for mysql.")
    database: str = Field(description="Database name.")
    username: str = Field("cdc_user", description="A user with LOGIN and REPLICATION.")
    password: SecretStr | None = Field(
        None,
        description="Its password; write ${VAR}, never the value. Required for postgres and mysql"
        ' without connection_id; "" where the server asks for none.',
    )
    tables: tuple[TableName, ...] = Field(
        (), description='Tables to take, schema-qualified: public.orders, public."odd.name".'
    )
    server_id: int | None = Field(
        None,
        ge=1,
        le=2**32 - 1,
        description="MySQL and MariaDB: the number capture takes among the source's replicas; by"
        " default one derived from pipeline_id.",
    )
    slot_name: str | None = Field(
        None,
        pattern=r"^[a-z0-9_]{1,63}$",
        description="Replication slot; by default tidegate_<pipeline_id>.",
    )
    publication_name: str | None = Field(
        None, description="Publication; by default tidegate_<pipeline_id>."
    )
    ddl_messages: Literal["auto", "off"] = Field(
        "auto",
        description="auto: where its user may (a superuser), deploy installs an event trigger that"
        " notes in the source's log what ALTER TABLE did to a table's columns, so that renames are"
        " always certain; off: the live catalog is asked instead.",
    )
    snapshot_mode: SnapshotMode = Field(
        SnapshotMode.INITIAL,
        description="initial: `tidegate run` sweeps a table before its increments flow;"
        " never: only a sweep asked for by hand or by Dag does.",
    )
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = Field(
        "prefer", description="libpq sslmode, used by capture and by Spark's JDBC alike."
    )
    sslrootcert: str | None = Field(
        None, description="CA file for verify-ca and verify-full; relative to this file."
    )
    connect_timeout_seconds: int = Field(
        CONNECT_TIMEOUT_SECONDS, ge=1, description="Give up connecting after this."
    )
    options: dict[str, Any] = Field(
        {}, description="Settings of a package's connector, which checks them; ours take none."
    )

    @model_validator(mode="before")
    @classmethod
    def _port_of_kind(cls, data: Any) -> Any:
        if isinstance(data, dict) and str(data.get("source_type")) == source_types.MYSQL:
            return {"port": MYSQL_PORT, **data}
        return data

    @model_validator(mode="after")
    def _some_way_in(self) -> SourceConfig:
        asked = self.source_type in source_types.BUILT_IN  # a package's may be a file
        if asked and self.password is None and self.connection_id is None:
            told = "a required key is missing: password, or connection_id"
            raise WrongTogether([Issue(("password",), told)])
        return self

    @field_validator("tables")
    @classmethod
    def _no_table_twice(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted(table for table, times in Counter(value).items() if times > 1)
        if twice:
            raise ValueError(f"listed more than once: {', '.join(twice)}")
        return value

    @property
    def table_ids(self) -> tuple[TableId, ...]:
        return tuple(TableId.parse(table) for table in self.tables)
