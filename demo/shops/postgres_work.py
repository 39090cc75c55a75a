"""The shop's application on PostgreSQL."""

from __future__ import annotations

import os
import random
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import psycopg

from demo.shops import OWNER
from demo.shops.work import Work


class PostgresWork(Work):
    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self._sql = psycopg.connect(os.environ["SHOP_DSN"])
        self._sql.execute(f"SET ROLE {OWNER}".encode())
        self._sql.commit()

    def transaction(self) -> AbstractContextManager[Any]:
        return self._sql.transaction()

    def run(self, kind: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self._sql.execute(statement.encode(), values)
        if kind:
            self.counts[kind] += max(cursor.rowcount, 0)
        return cursor.fetchall() if cursor.description else []

    def add_lines(self, order: int, lines: int) -> None:
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
            self.add_payment(order, total)

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

    def renumber_customer(self) -> None:
        """A change of a key other tables refer to; it cascades to their orders."""
        self.run(
            "key changes",
            "UPDATE customers SET id = nextval(pg_get_serial_sequence('customers', 'id'))"
            " WHERE id = %s",
            self.any_id("customers"),
        )

    steps: ClassVar = {
        Work.place_order: 40,
        pay_order: 20,
        ship_orders: 12,
        change_price: 12,
        edit_customer: 8,
        Work.delete_order: 5,
        rewrite_description: 1,
        Work.renumber_items: 1,
        renumber_customer: 1,
    }
