"""The shop's application on MariaDB."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from typing import Any, ClassVar

import pymysql

from demo.shops import DATABASE, OWNER
from demo.shops.work import Work


class MysqlWork(Work):
    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self._sql: Any = pymysql.connect(
            host="127.0.0.1",
            port=int(os.environ["SHOP_PORT"]),
            user=OWNER,
            password=os.environ["SHOP_PASSWORD"],
            database=DATABASE,
        )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self._sql.begin()
        yield
        self._sql.commit()

    def run(self, kind: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._sql.cursor() as cursor:
            cursor.execute(statement, values or None)
            if kind:
                self.counts[kind] += max(cursor.rowcount, 0)
            return list(cursor.fetchall())

    def add_lines(self, order: int, lines: int) -> None:
        self.run(
            "inserts",
            "INSERT INTO order_items (order_id, line_no, product_id, quantity, unit_price)"
            f" SELECT %s, n.seq, p.id, 1 + n.seq %% 3, p.price FROM seq_1_to_{lines} AS n"
            " JOIN products AS p ON p.id = 1 + (%s + n.seq * 37) %% 3000",
            order,
            order,
        )

    def pay_order(self) -> None:
        due = self.run(
            "",
            "SELECT id, total FROM orders WHERE id >= %s AND status = 'placed' ORDER BY id LIMIT 1"
            " FOR UPDATE",
            self.any_id("orders"),
        )
        for order, total in due:
            self.run(
                "updates",
                "UPDATE orders SET status = 'paid', changed_at = now(3) WHERE id = %s",
                order,
            )
            self.add_payment(order, total)

    def ship_orders(self) -> None:
        self.run(
            "updates",
            "UPDATE orders SET status = 'shipped', changed_at = now(3),"
            " shipping = json_set(shipping, '$.shipped', true)"
            " WHERE id >= %s AND status = 'paid' ORDER BY id LIMIT 3",
            self.any_id("orders"),
        )

    def change_price(self) -> None:
        self.run(
            "updates",
            "UPDATE products SET price = round(price * %s, 2) + 0.01, stock = stock - 1,"
            " updated_at = now(6) WHERE id = %s AND stock > 0",
            round(self.dice.uniform(0.9, 1.1), 4),
            self.any_id("products"),
        )

    def rewrite_description(self) -> None:
        self.run(
            "updates",
            "UPDATE products SET description = repeat(md5(rand()), 80) WHERE id = %s",
            self.any_id("products"),
        )

    def edit_customer(self) -> None:
        self.run(
            "updates",
            "UPDATE customers SET tags = concat_ws(',', nullif(tags, ''), %s),"
            " preferences = json_set(preferences, '$.visits', %s) WHERE id = %s",
            self.dice.choice(["sale", "gift", "vip"]),
            self.dice.randint(1, 9999),
            self.any_id("customers"),
        )

    def renew_payments(self) -> None:
        """A change of a key of another type."""
        self.run(
            "key changes",
            "UPDATE payments SET id = uuid() WHERE order_id = %s",
            self.any_id("orders"),
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
        renew_payments: 1,
    }
