"""MySQL itself is half a gigabyte: its tests are collected where someone unpacked it."""

from __future__ import annotations

import os

from tidegate.testing.mariadb_server import MYSQL_HOME

collect_ignore = [] if os.environ.get(MYSQL_HOME) else ["test_mysql_server.py"]
