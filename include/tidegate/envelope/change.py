"""Operations and the columns of a change, as the change log stores them."""

from __future__ import annotations

from enum import StrEnum


class Op(StrEnum):
    """What a change does; the letters are Debezium's, plus ``m`` for a logical message."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"
    READ = "r"
    MESSAGE = "m"
