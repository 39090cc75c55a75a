"""The Iceberg catalog, opened the same way by PyIceberg and by Spark.

By default it is one SQLite file that Spark (JDBC) and any number of Python processes share. Both
sides wait for a lock instead of failing at once; a lock that outlasts the wait is a
:class:`~tidegate.errors.RetriableError`, never a half-done commit (SQLite rolls back).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit, urlunsplit

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.table import Table
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError, OperationalError

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import CatalogType, PlatformConfig
from tidegate.errors import RetriableError
from tidegate.lake import sql_catalog, variant_type
from tidegate.names import CATALOG

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine, ExceptionContext

BUSY_SECONDS: Final = 60.0
"""How long either engine waits for the SQLite file's lock; a commit holds it for milliseconds."""

_AT_ONCE: Final = 8
"""Requests to a catalog server at the same time."""

SPARK_PREFIX: Final = f"spark.sql.catalog.{CATALOG}"
_URI_TYPES: Final = {
    "sqlite": CatalogType.SQLITE,
    "jdbc": CatalogType.JDBC,
    "postgresql": CatalogType.JDBC,
    "http": CatalogType.REST,
    "https": CatalogType.REST,
    "thrift": CatalogType.HIVE,
}


@dataclass(frozen=True, slots=True)
class CatalogPlace:
    """Where the catalog and its files are, overrides applied and paths made absolute."""

    type: CatalogType
    uri: str | None  # sqlite: the absolute file path
    warehouse: str
    properties: dict[str, str]


def home(platform: PlatformConfig) -> Path:
    """The local state directory, absolute."""
    return Path(platform.lake.home).expanduser().resolve()


def resolve(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> CatalogPlace:
    """The catalog a pipeline uses: its own sink's overrides first, then the platform's."""
    configured = platform.lake.catalog
    kind, uri = configured.type, configured.uri
    warehouse = platform.lake.warehouse
    if pipeline is not None:
        warehouse = pipeline.lake.warehouse or warehouse
        if pipeline.lake.catalog_uri is not None:
            uri = pipeline.lake.catalog_uri
            kind = _URI_TYPES.get(uri.split(":", 1)[0].split("+", 1)[0], kind)
    if kind is CatalogType.SQLITE:
        uri = str(_sqlite_path(uri, home(platform)))
    return CatalogPlace(
        type=kind,
        uri=uri,
        warehouse=_warehouse(warehouse, home(platform)),
        properties=dict(configured.properties),
    )


def open_catalog(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> Catalog:
    """Open (and for SQLite create) the catalog. Safe to call from many processes at once."""
    variant_type.teach()
    place = resolve(platform, pipeline)
    if place.type is CatalogType.SQLITE and place.uri is not None:
        Path(place.uri).parent.mkdir(parents=True, exist_ok=True)
    catalog = _connect(place)
    engine: Engine | None = getattr(catalog, "engine", None)
    if engine is not None:
        event.listen(engine, "handle_error", _locked_is_retriable, retval=True)
    return catalog


def _connect(place: CatalogPlace) -> Catalog:
    try:
        return load_catalog(CATALOG, **_python_properties(place))
    except (OperationalError, IntegrityError):
        # Another process created the SQLite tables at the same moment; now they exist.
        try:
            return load_catalog(CATALOG, **_python_properties(place))
        except OperationalError as error:
            if _is_locked(error.orig):
                raise catalog_locked() from error
            raise


def load(catalog: Catalog, identifier: tuple[str, str]) -> Table | None:
    """The table, or None if there is none."""
    try:
        return catalog.load_table(identifier)
    except NoSuchTableError:
        return None


def load_all(
    catalog: Catalog, identifiers: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Table]:
    """Those of the tables that exist: one query per namespace, or some requests side by side."""
    wanted = list(dict.fromkeys(identifiers))
    if isinstance(catalog, sql_catalog.CachingSqlCatalog):
        by_namespace: dict[str, list[str]] = {}
        for namespace, name in wanted:
            by_namespace.setdefault(namespace, []).append(name)
        return {
            (namespace, name): table
            for namespace, names in by_namespace.items()
            for name, table in catalog.load_tables(namespace, names).items()
        }
    with ThreadPoolExecutor(min(_AT_ONCE, len(wanted) or 1)) as pool:
        found = pool.map(lambda identifier: load(catalog, identifier), wanted)
        return {
            identifier: table
            for identifier, table in zip(wanted, found, strict=True)
            if table is not None
        }


def ensure_namespace(catalog: Catalog, namespace: str) -> None:
    """Create ``namespace`` unless it exists; two processes may do so at once."""
    try:
        catalog.create_namespace_if_not_exists((namespace,))
    except (NamespaceAlreadyExistsError, IntegrityError):
        return


def spark_catalog_conf(
    platform: PlatformConfig, pipeline: PipelineConfig | None = None
) -> dict[str, str]:
    """Spark configuration of the catalog ``lake``."""
    place = resolve(platform, pipeline)
    own = {
        # Cached tables go stale as soon as another process or session commits.
        "cache-enabled": "false",
        "warehouse": place.warehouse,
        **_SPARK_KINDS[place.type],
        **place.properties,
    }
    if place.type is CatalogType.SQLITE:
        own["uri"] = f"jdbc:sqlite:{place.uri}"
        own["jdbc.busy_timeout"] = str(int(BUSY_SECONDS * 1000))
    elif place.type is CatalogType.JDBC and place.uri is not None:
        own["uri"] = f"jdbc:{place.uri.removeprefix('jdbc:')}"
    elif place.uri is not None:
        own["uri"] = place.uri
    if place.warehouse.startswith("s3"):
        own.setdefault("io-impl", "org.apache.iceberg.aws.s3.S3FileIO")
    return {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        SPARK_PREFIX: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{SPARK_PREFIX}.{key}": value for key, value in own.items()},
    }


_SPARK_KINDS: Final[dict[CatalogType, dict[str, str]]] = {
    CatalogType.SQLITE: {"type": "jdbc", "jdbc.schema-version": "V1"},
    CatalogType.JDBC: {"type": "jdbc", "jdbc.schema-version": "V1"},
    CatalogType.REST: {"type": "rest"},
    CatalogType.GLUE: {"type": "glue"},
    CatalogType.HIVE: {"type": "hive"},
}


_SQL: Final = {"py-catalog-impl": sql_catalog.IMPLEMENTATION, "schema_version": "v1"}


def _python_properties(place: CatalogPlace) -> dict[str, str]:
    properties = {"warehouse": place.warehouse, **place.properties}
    match place.type:
        case CatalogType.SQLITE:
            uri = f"sqlite:///{quote(str(place.uri))}?timeout={BUSY_SECONDS:g}"
            return properties | {**_SQL, "uri": uri}
        case CatalogType.JDBC:
            uri = _sqlalchemy_uri(str(place.uri), place.properties)
            return properties | {**_SQL, "uri": uri}
        case _:
            own = {"type": place.type.value}
            return properties | own | ({"uri": place.uri} if place.uri else {})


def _sqlalchemy_uri(jdbc: str, properties: dict[str, str]) -> str:
    """``jdbc:postgresql://host/db`` with Iceberg's ``jdbc.user``/``jdbc.password`` properties."""
    parts = urlsplit(jdbc.removeprefix("jdbc:"))
    netloc = parts.netloc
    if "jdbc.user" in properties and "@" not in netloc:
        user = quote(properties["jdbc.user"], safe="")
        password = quote(properties.get("jdbc.password", ""), safe="")
        netloc = f"{user}:{password}@{netloc}"
    scheme = parts.scheme if "+" in parts.scheme else f"{parts.scheme}+psycopg2"
    return urlunsplit((scheme, netloc, parts.path, parts.query, ""))


def _sqlite_path(uri: str | None, base: Path) -> Path:
    if uri is None:
        return base / "catalog.db"
    path = uri.removeprefix("jdbc:").removeprefix("sqlite:").removeprefix("///")
    return Path(path).expanduser().resolve()


def _warehouse(configured: str | None, base: Path) -> str:
    if configured is None:
        return f"file://{base / 'warehouse'}"
    if "://" in configured:
        return configured.rstrip("/")
    return f"file://{Path(configured).expanduser().resolve()}"


def _locked_is_retriable(context: ExceptionContext) -> BaseException | None:
    return catalog_locked() if _is_locked(context.original_exception) else None


def _is_locked(error: BaseException | None) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def catalog_locked() -> RetriableError:
    """Either engine waited in vain."""
    return RetriableError(
        "lake.catalog_locked",
        f"the catalog file stayed locked by another process for {BUSY_SECONDS:g} s",
        hint="try again; if it stays so, look for a process that hangs with the file open",
    )
