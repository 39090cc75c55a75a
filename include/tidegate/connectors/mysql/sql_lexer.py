"""A statement's text → its tokens: words, names, strings, numbers and signs.

Comments are left out, what is in versioned ones (``/*! … */``) is not: the server takes the ``!``
out of those that it did not run before it writes the statement to its log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Kind(Enum):
    WORD = auto()  # a keyword, or a name without quotes
    NAME = auto()  # a name in quotes
    STRING = auto()
    NUMBER = auto()
    SIGN = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` is what stands between quotes, a word as it was written, or a sign. It may be a
    value: no reason names it (I9)."""

    kind: Kind
    text: str

    @property
    def word(self) -> str:
        """In capitals; empty for anything else."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    def is_sign(self, sign: str) -> bool:
        return self.kind is Kind.SIGN and self.text == sign


@dataclass(frozen=True, slots=True)
class Dialect:
    """What of the session decides how text is read."""

    ansi_quotes: bool = False
    backslash_escapes: bool = True
    brackets: bool = False  # [name]: MariaDB's sql_mode MSSQL
    mariadb: bool = False


class Unreadable(Exception):
    """A quote or a comment that does not end."""


_SPACE: Final = re.compile(r"[\s\x00-\x20]+")
_WORD: Final = re.compile(r"[0-9A-Za-z_$\u0080-\U0010ffff]+")
_TO_LINE_END: Final = re.compile(r"(#|--(?=[\x00-\x20\x7f]|\Z))[^\n]*")
_VERSION: Final = re.compile(r"\d{5,6}")
_STOPS: Final = {
    (quote, escapes): re.compile(
        (r"\\.|" if escapes else "") + re.escape(quote) * 2 + "|" + re.escape(quote), re.DOTALL
    )
    for quote in "`\"']"
    for escapes in (False, True)
}
"""What ends a quoted text, or stands for a character in it."""


def tokens(sql: str, dialect: Dialect) -> tuple[Token, ...]:
    """All of them; :class:`Unreadable` if there is no telling."""
    return tuple(_Lexer(sql, dialect).read())


class _Lexer:
    def __init__(self, sql: str, dialect: Dialect) -> None:
        self._sql = sql
        self._dialect = dialect
        self._at = 0
        self._versioned = 0  # comments whose content counts, that are open

    def read(self) -> list[Token]:
        found: list[Token] = []
        while self._at < len(self._sql):
            token = self._next()
            if token is not None:
                found.append(token)
        if self._versioned:
            raise Unreadable
        return found

    def _next(self) -> Token | None:
        """None for what is no token."""
        for pattern in (_SPACE, _TO_LINE_END):
            match = pattern.match(self._sql, self._at)
            if match is not None:
                self._at = match.end()
                return None
        if self._sql.startswith("/*", self._at):
            self._comment()
            return None
        if self._versioned and self._sql.startswith("*/", self._at):
            self._versioned -= 1
            self._at += 2
            return None
        word = _WORD.match(self._sql, self._at)
        if word is not None:
            self._at = word.end()
            return Token(Kind.NUMBER if word[0].isdecimal() else Kind.WORD, word[0])
        return self._quoted_or_sign()

    def _comment(self) -> None:
        marks = ("/*!", "/*M!") if self._dialect.mariadb else ("/*!",)
        mark = next((m for m in marks if self._sql.startswith(m, self._at)), None)
        if mark is not None:
            self._at += len(mark)
            version = _VERSION.match(self._sql, self._at)
            self._at = version.end() if version else self._at
            self._versioned += 1
            return
        end = self._sql.find("*/", self._at + 2)
        if end < 0:
            raise Unreadable
        self._at = end + 2

    def _quoted_or_sign(self) -> Token:
        sign = self._sql[self._at]
        if sign == "`" or (sign == '"' and self._dialect.ansi_quotes):
            return Token(Kind.NAME, self._until(sign, escapes=False))
        if sign == "[" and self._dialect.brackets:
            return Token(Kind.NAME, self._until("]", escapes=False))
        if sign in "'\"":
            return Token(Kind.STRING, self._until(sign, escapes=self._dialect.backslash_escapes))
        self._at += 1
        return Token(Kind.SIGN, sign)

    def _until(self, quote: str, *, escapes: bool) -> str:
        """What lies between quotes; twice the quote is one."""
        at, parts, stops = self._at + 1, [], _STOPS[quote, escapes]
        while (stop := stops.search(self._sql, at)) is not None:
            parts.append(self._sql[at : stop.start()])
            at = stop.end()
            if stop[0] == quote:
                self._at = at
                return "".join(parts)
            parts.append(stop[0][1:])
        raise Unreadable
