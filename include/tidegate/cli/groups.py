"""Groups of commands with one that needs no word."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class ShowByDefault(TyperGroup):
    """``schema PIPELINE`` is ``schema show PIPELINE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["show", *args]
        return super().parse_args(ctx, args)
