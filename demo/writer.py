"""A shop at work: orders placed, paid, shipped, cancelled, deleted; prices and keys changed.

A process of its own, one connection, one transaction at a time at a steady rate, until SIGTERM.
What it wrote is in the statistics file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

Step = Callable[["Shop"], None]


class Shop:
    """The application's transactions."""

    def __init__(self, connection: psycopg.Connection[Any], dice: random.Random) -> None:
        self.sql = connection
        self.dice = dice
        self.counts: Counter[str] = Counter()

    def run(self, kind: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self.sql.execute(statement, values)  # type: ignore[arg-type]
        self.counts[kind] += max(cursor.rowcount, 0)
        return cursor.fetchall() if cursor.description else []

    def any_id(self, table: str) -> int:
        """A random existing id, without reading the table."""
        high = self.sql.execute(f"SELECT max(id) FROM {table}").fetchone()  # type: ignore[arg-type]
        assert high is not None
        return self.dice.randint(1, int(high[0]))

    def place_order(self) -> None:
        lines = self.dice.randint(1, 4)
        placed = self.run(
            "inserts",
            "INSERT INTO orders (customer_id, status, total, shipping)"
            " SELECT id, 'placed', %s, '{\"carrier\": \"post\"}'"
            " FROM customers WHERE id >= %s ORDER BY id LIMIT 1 RETURNING id",
            round(self.dice.uniform(5, 900), 2),
            self.any_id("customers"),
        )
        for (order,) in placed:
            self.run(
                "inserts",
                "INSERT INTO order_items (order_id, line_no, product_id, quantity, unit_price)"
                " SELECT %s, n, p.id, 1 + n %% 3, p.price FROM generate_series(1, %s) AS n"
                " JOIN products AS p ON p.id = 1 + (%s + n * 37) %% 3000",
                order,
                lines,
                order,
            )

    def pay_order(self) -> None:
        paid = self.run(
            "updates",
            "UPDATE orders SET status = 'paid', changed_at = now() WHERE id ="
            " (SELECT id FROM orders WHERE id >= %s AND status = 'placed' ORDER BY id LIMIT 1)"
            " RETURNING id, total",
            self.any_id("orders"),
        )
        for order, total in paid:
            self.run(
                "inserts",
                "INSERT INTO payments (order_id, method, amount) VALUES (%s, 'card', %s)",
                order,
                total,
            )

    def ship_orders(self) -> None:
        self.run(
            "updates",
            "UPDATE orders SET status = 'shipped', changed_at = now(),"
            " shipping = shipping || '{\"shipped\": true}' WHERE id IN"
            " (SELECT id FROM orders WHERE id >= %s AND status = 'paid' ORDER BY id LIMIT 3)",
            self.any_id("orders"),
        )

    def change_price(self) -> None:
        """The description is out of line: the log does not carry it (TOAST)."""
        self.run(
            "updates",
            "UPDATE products SET price = round(price * %s::numeric, 2) + 0.01, stock = stock - 1,"
            " updated_at = now() WHERE id = %s",
            round(self.dice.uniform(0.9, 1.1), 4),
            self.any_id("products"),
        )

    def rewrite_description(self) -> None:
        self.run(
            "updates",
            "UPDATE products SET ratings = ratings || 5::smallint, description ="
            " (SELECT string_agg(md5(n || clock_timestamp()::text), '')"
            " FROM generate_series(1, 80) AS n) WHERE id = %s",
            self.any_id("products"),
        )

    def edit_customer(self) -> None:
        self.run(
            "updates",
            "UPDATE customers SET tags = array_append(tags, %s), preferences = preferences ||"
            " jsonb_build_object('visits', %s) WHERE id = %s",
            self.dice.choice(["sale", "gift, wrapped", "vip"]),
            self.dice.randint(1, 9999),
            self.any_id("customers"),
        )

    def delete_order(self) -> None:
        """Items and payments go with it."""
        order = self.any_id("orders")
        for table in ("payments", "order_items"):
            self.run("deletes", f"DELETE FROM {table} WHERE order_id = %s", order)
        self.run("deletes", "DELETE FROM orders WHERE id = %s", order)

    def renumber_items(self) -> None:
        """A change of a composite key."""
        self.run(
            "key changes",
            "UPDATE order_items SET line_no = line_no + 100 WHERE order_id = %s AND line_no < 100",
            self.any_id("orders"),
        )

    def renumber_customer(self) -> None:
        """A change of a key other tables refer to; it cascades to their orders."""
        self.run(
            "key changes",
            "UPDATE customers SET id = nextval(pg_get_serial_sequence('customers', 'id'))"
            " WHERE id = %s",
            self.any_id("customers"),
        )


STEPS: dict[Step, int] = {
    Shop.place_order: 40,
    Shop.pay_order: 20,
    Shop.ship_orders: 12,
    Shop.change_price: 12,
    Shop.edit_customer: 8,
    Shop.delete_order: 5,
    Shop.rewrite_description: 1,
    Shop.renumber_items: 1,
    Shop.renumber_customer: 1,
}


def write_until(stop: threading.Event, dsn: str, per_second: float, stats: Path) -> None:
    dice = random.Random(7)
    with psycopg.connect(dsn) as connection:
        connection.execute("SET ROLE shop_app")
        connection.commit()
        shop = Shop(connection, dice)
        due = time.monotonic()
        while not stop.is_set():
            (step,) = dice.choices(list(STEPS), list(STEPS.values()))
            with connection.transaction():
                step(shop)
            shop.counts["transactions"] += 1
            if shop.counts["transactions"] % 20 == 1:
                save(stats, shop.counts)
            due = max(due + 1 / per_second, time.monotonic() - 1)
            stop.wait(max(0.0, due - time.monotonic()))
        save(stats, shop.counts)


def save(stats: Path, counts: Counter[str]) -> None:
    staging = stats.with_suffix(".new")
    staging.write_text(json.dumps(counts))
    staging.replace(stats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-second", type=float, default=30.0, help="transactions a second")
    parser.add_argument("--stats", type=Path, required=True, help="where to note what was written")
    arguments = parser.parse_args()
    stop = threading.Event()
    for wanted in (signal.SIGTERM, signal.SIGINT):
        signal.signal(wanted, lambda *_: stop.set())
    write_until(stop, os.environ["SHOP_DSN"], arguments.per_second, arguments.stats)


if __name__ == "__main__":
    main()
