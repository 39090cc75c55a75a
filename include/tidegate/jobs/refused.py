"""What a source's server refuses a Spark task, in the server's own words.

They come as Java exceptions, or quoted in the text of a task's failure. Only messages about
privileges are repeated: they name tables, columns and users, never a value (I9).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from tidegate.errors import ConfigError

_DENIED: Final = re.compile(
    r"(?P<words>(?:permission denied for (?:table|relation|schema|view|column|sequence|function)"
    r"|(?:\w+ )?command denied to user|Access denied for user|[Aa]ccess denied; you need)[^\n]*)"
)
_DRIVERS: Final = ("org.postgresql.", "org.mariadb.", "com.mysql.", "java.sql.SQL")


def refused(throwables: Iterable[Any]) -> ConfigError | None:
    """The error for a missing privilege; None if it is something else."""
    for throwable in throwables:
        said = f"{throwable.getClass().getName()}: {throwable.getMessage() or ''}"
        if not any(driver in said for driver in _DRIVERS):
            continue
        found = _DENIED.search(said)
        if found is not None:
            return ConfigError(
                "source.privilege",
                f"the source refused a read: {found['words'].strip()}",
                hint="`tidegate validate` prints the GRANT that is missing, for tables, columns and"
                " partitions",
            )
    return None
