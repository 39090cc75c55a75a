"""Fixtures of the whole suite live in tests/support, one module per real thing."""

from __future__ import annotations

import os

# Short-lived JVMs on few cores: the optimising compiler costs more than it brings here.
# The other one alone has 48 MB of code: full after minutes of SQL, then nothing is compiled.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=160m",
)

pytest_plugins = [
    "tests.support.no_skips",
    "tests.support.browser",
    "tests.support.cluster",
    "tests.support.lake",
    "tests.support.log_events",
    "tests.support.mysql",
    "tests.support.postgres",
    "tests.support.shop",
    "tests.support.spark",
    "tests.support.stack",
    "tests.support.cli",  # after what it imports, or assertions there are not rewritten
]
