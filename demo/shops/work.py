"""What the shop's applications have in common: dice, statements, and a count of what they did."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

Step = Callable[[Any], None]


class Work(ABC):
    """The application's transactions on one connection."""

    steps: ClassVar[Mapping[Step, int]]
    """How often each is done, of a hundred."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.counts: Counter[str] = Counter()

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Any]: ...

    @abstractmethod
    def run(self, kind: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """One statement; the rows that it touched count as ``kind``, unless that is empty."""

    def any_id(self, table: str) -> int:
        """A random existing id, without reading the table."""
        ((high,),) = self.run("", f"SELECT max(id) FROM {table}")
        return self.dice.randint(1, int(high))

    def one(self) -> None:
        (step,) = self.dice.choices(list(self.steps), list(self.steps.values()))
        with self.transaction():
            step(self)
        self.counts["transactions"] += 1

    @abstractmethod
    def add_lines(self, order: int, lines: int) -> None:
        """Items of an order."""

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
            self.add_lines(order, lines)

    def add_payment(self, order: int, total: object) -> None:
        self.run(
            "inserts",
            "INSERT INTO payments (order_id, method, amount) VALUES (%s, 'card', %s)",
            order,
            total,
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
