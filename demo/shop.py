"""The shop database: roles, tables and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidegate.testing.postgres_server import PASSWORD, PostgresServer

DATABASE: Final = "shop"
OWNER: Final = "shop_app"
CAPTURE_USER: Final = "cdc_user"
TABLES: Final = ("customers", "products", "orders", "order_items", "payments")


def create(server: PostgresServer) -> dict[str, int]:
    """Make the database once; the answer is the number of rows per table."""
    with server.connect() as admin:
        if admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone():
            return count(server)
        for role, options in ((OWNER, "LOGIN"), (CAPTURE_USER, "LOGIN REPLICATION")):
            admin.execute(f"CREATE ROLE {role} {options} PASSWORD '{PASSWORD}'")
        # Publishing a table takes its owner: the capture user is a member of that role.
        admin.execute(f"GRANT {OWNER} TO {CAPTURE_USER}")
        admin.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
    statements = (Path(__file__).parent / "shop.sql").read_text()
    with server.connect(DATABASE) as connection:
        connection.execute(f"SET ROLE {OWNER}")
        connection.execute(statements)
    return count(server)


def count(server: PostgresServer) -> dict[str, int]:
    """Rows per table now."""
    with server.connect(DATABASE) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in TABLES
        }
