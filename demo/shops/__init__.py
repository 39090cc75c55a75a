"""The shop as a source: one story, a database of either kind behind it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from tidegate.testing.postgres_server import PostgresServer

DATABASE: Final = "shop"
OWNER: Final = "shop_app"
CAPTURE_USER: Final = "cdc_user"
TABLES: Final = ("customers", "products", "orders", "order_items", "payments")
KINDS: Final = ("postgres", "mysql")

Say = Callable[[str], None]


class Shop(Protocol):
    """A database server with the shop in it."""

    kind: str
    """``source_type`` in the pipeline's file."""
    schema: str
    """What stands before a table's name."""
    made: str
    """What deploying makes at the source and in the lake."""

    @property
    def port(self) -> int: ...

    @property
    def client(self) -> str:
        """How to look into the shop by hand."""
        ...

    @property
    def environment(self) -> dict[str, str]:
        """Where the writer writes."""
        ...

    def start(self) -> int:
        """Up and answering; the server's process."""
        ...

    def system(self) -> str: ...

    def create(self) -> dict[str, int]:
        """Make the database once; the number of rows per table."""
        ...

    def count(self) -> dict[str, int]:
        """Rows per table now."""
        ...

    def holding_back(self, say: Say) -> AbstractContextManager[None]:
        """Keeps a sweep's cut waiting where the source can, so that its gate is seen closed."""
        ...

    def lag(self, behind: int, kept: int) -> str:
        """Bytes not captured yet and bytes kept for us, in the source's own words."""
        ...


def of(kind: str, airflow_server: PostgresServer, settings: dict[str, Any]) -> Shop:
    """The shop of a source type; PostgreSQL's lives on the server that Airflow's database has."""
    if kind == "mysql":
        from demo.shops.mysql import MysqlShop

        return MysqlShop(settings["mysql_port"])
    from demo.shops.postgres import PostgresShop

    return PostgresShop(airflow_server)
