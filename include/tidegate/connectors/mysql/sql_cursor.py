"""Reads a statement's tokens one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from tidegate.connectors.mysql.sql_lexer import Kind, Token

_NOTHING: Final = Token(Kind.SIGN, "")


class NotUnderstood(Exception):
    """The statement, or a part of it, is not one that is known."""


class Named(NamedTuple):
    """A table as a statement names it."""

    database: str | None
    name: str


class Cursor:
    """What is asked for is read if it is there; else nothing is, or :class:`NotUnderstood`."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def ended(self) -> bool:
        return self._at >= len(self._tokens)

    @property
    def rest(self) -> tuple[Token, ...]:
        return self._tokens[self._at :]

    def peek(self, further: int = 0) -> Token:
        at = self._at + further
        return self._tokens[at] if at < len(self._tokens) else _NOTHING

    def take(self) -> Token:
        token = self.peek()
        self._at += 1
        return token

    def has(self, *words: str) -> bool:
        """Whether these words come next, one after the other."""
        return all(self.peek(n).word == word for n, word in enumerate(words))

    def skip(self, *words: str) -> bool:
        found = self.has(*words)
        self._at += len(words) if found else 0
        return found

    def one_of(self, words: Collection[str]) -> str:
        """The next word if it is one of ``words``, else nothing."""
        found = self.peek().word
        if found not in words:
            return ""
        self._at += 1
        return found

    def sign(self, sign: str) -> bool:
        found = self.peek().is_sign(sign)
        self._at += found
        return found

    def name(self) -> str:
        token = self.take()
        if token.kind not in (Kind.NAME, Kind.WORD, Kind.NUMBER) or not token.text:
            raise NotUnderstood
        return token.text

    def table(self) -> Named:
        """``name``, ``database.name`` or ``.name``."""
        if self.sign("."):
            return Named(None, self.name())
        first = self.name()
        if self.sign("."):
            return Named(first, self.name())
        return Named(None, first)

    def value(self) -> Token:
        """A word, a name, a string or a number, perhaps behind ``=``."""
        self.sign("=")
        token = self.take()
        if token.kind is Kind.SIGN:
            raise NotUnderstood
        return token

    def skip_wait(self) -> None:
        """How long MariaDB shall wait for a lock."""
        if self.skip("WAIT"):
            self.value()
        else:
            self.skip("NOWAIT")

    def parentheses(self) -> bool:
        """Everything from ``(`` to the ``)`` that closes it, if one opens here."""
        if not self.peek().is_sign("("):
            return False
        depth = 0
        while not self.ended:
            token = self.take()
            depth += token.is_sign("(") - token.is_sign(")")
            if not depth:
                return True
        raise NotUnderstood

    def end(self) -> None:
        if not self.ended:
            raise NotUnderstood

    def parts(self) -> Iterator[Cursor]:
        """The rest, at its commas outside of parentheses."""
        depth = 0
        part: list[Token] = []
        for token in self.rest:
            depth += token.is_sign("(") - token.is_sign(")")
            if token.is_sign(",") and not depth:
                yield Cursor(tuple(part))
                part = []
            else:
                part.append(token)
        self._at = len(self._tokens)
        yield Cursor(tuple(part))
