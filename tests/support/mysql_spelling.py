"""Statements spelled in every way that a server takes: quoting, comments, case, charsets, modes."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Final

NAMES: Final = ("items", "größe", "we`ird", 'qu"ote', "a b", "select", "x.y", "表", "9to5")
"""The last byte of 表 is a backslash in Shift JIS."""
_CHARSETS: Final = {
    "utf8mb4": "utf-8",
    "latin1": "latin-1",
    "sjis": "shift_jis",
    "gbk": "gbk",
    "koi8r": "koi8-r",
}
_MODES: Final = ("", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES")
_PLAIN: Final = re.compile(r"[a-z][a-z0-9_]*", re.IGNORECASE)
_GAPS: Final = (" ", " ", " ", "\n", "\t ", "/**/", " /* ' \" ` */ ", " # it's `\n", ' -- "x\n')
_TEXTS: Final = ("it's", "*/", "/* x", "ADD y int DEFAULT 5", '"', "`", "\\", "a\\'b", "# -- ;")


@dataclass(frozen=True)
class Name:
    """An identifier, perhaps of a table of this database."""

    text: str
    database: str | None = None


@dataclass(frozen=True)
class Text:
    """Any string."""


Part = str | Name | Text


@dataclass(frozen=True)
class Session:
    """What decides how text is read."""

    charset: str
    mode: str

    @property
    def ansi(self) -> bool:
        return "ANSI_QUOTES" in self.mode

    @property
    def escapes(self) -> bool:
        return "NO_BACKSLASH" not in self.mode


class Spelling:
    """One way to write, at random."""

    def __init__(self, chance: random.Random, flavour: str) -> None:
        self._chance = chance
        self._mariadb = flavour == "mariadb"

    def session(self, *parts: Part) -> Session:
        """One that can write all names."""
        names = "".join(part.text for part in parts if isinstance(part, Name))
        able = [name for name, codec in _CHARSETS.items() if _holds(codec, names)]
        return Session(self._chance.choice(able), self._chance.choice(_MODES))

    def statement(self, session: Session, *parts: Part, prefix: bool = True) -> str:
        gap = self._chance.choice
        written = [self._part(session, part) for part in parts]
        if prefix and self._mariadb and self._chance.random() < 0.2:
            written.insert(0, "SET STATEMENT lock_wait_timeout=5, max_statement_time=60 FOR")
        text = self._chance.choice(("", "", "/* TRUNCATE items */ "))
        for at, one in enumerate(written):
            text += (gap(_GAPS) if at else "") + one
        return text + self._chance.choice(("", "", ";", " /* done */"))

    def _part(self, session: Session, part: Part) -> str:
        if isinstance(part, Text):
            return self._string(session)
        if isinstance(part, Name):
            return self._name(session, part)
        word = "".join(self._chance.choice((c.upper(), c.lower())) for c in part)
        if self._chance.random() < 0.1 and _PLAIN.fullmatch(part):
            marks = ["/*!", "/*!50001 "] + (["/*M!", "/*M!100100 "] if self._mariadb else [])
            return f"{self._chance.choice(marks)}{word}*/"
        return word

    def _name(self, session: Session, name: Name) -> str:
        written = self._quoted(session, name.text)
        if name.database is None or self._chance.random() < 0.5:
            return written
        dot = self._chance.choice((".", " . ", "./**/"))
        return f"{self._quoted(session, name.database)}{dot}{written}"

    def _quoted(self, session: Session, text: str) -> str:
        ways = ["`" + text.replace("`", "``") + "`"]
        if session.ansi:
            ways.append('"' + text.replace('"', '""') + '"')
        if _PLAIN.fullmatch(text) and text != "select":
            ways.append(text)
        return self._chance.choice(ways)

    def _string(self, session: Session) -> str:
        text = self._chance.choice(_TEXTS)
        text = text.replace("\\", "\\\\") if session.escapes else text
        quote = "'" if session.ansi or self._chance.random() < 0.5 else '"'
        return quote + text.replace(quote, quote * 2) + quote


def _holds(codec: str, text: str) -> bool:
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return False
    return True
