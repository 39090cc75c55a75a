"""Whom a test server runs as, and where its data may be.

Database servers refuse to run as root, so under root they run as ``nobody``. Where that user cannot
reach the data directory (a checkout under /root), one in the temporary directory takes its place;
the permissions of directories outside it are never touched.
"""

from __future__ import annotations

import logging
import os
import pwd
import socket
import tempfile
from pathlib import Path
from typing import Any

from tidegate.testing.places import own_place, stable_place

log = logging.getLogger(__name__)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def demoted() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {"cwd": "/"}
    return {"user": _nobody().pw_uid, "group": _nobody().pw_gid, "extra_groups": [], "cwd": "/"}


def placed(wanted: Path) -> Path:
    """``wanted``, or a stable stand-in where ``nobody`` could not walk to it."""
    wanted = wanted.absolute()
    if os.geteuid() != 0 or not [p for p in _closed(wanted) if not _temporary(p)]:
        return wanted
    target = own_place(stable_place("tidegate-data", str(wanted))) / wanted.name
    log.info("%s is out of reach for the server's user; the data is in %s", wanted, target)
    return target


def make(directory: Path) -> None:
    """An empty directory of the server's user; closed temporary parents let it walk through."""
    for parent in reversed(directory.parents):
        if not parent.exists():
            parent.mkdir(exist_ok=True)
            parent.chmod(0o755)
    directory.mkdir(exist_ok=True)
    directory.chmod(0o700)
    give(directory)
    if os.geteuid() == 0:
        for parent in _closed(directory):
            parent.chmod(parent.stat().st_mode | 0o011)


def give(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, _nobody().pw_uid, _nobody().pw_gid)


def _closed(path: Path) -> list[Path]:
    """Existing parents others cannot walk through."""
    return [p for p in path.parents if p.exists() and not p.stat().st_mode & 0o001]


def _temporary(path: Path) -> bool:
    return Path(tempfile.gettempdir()).resolve() in path.resolve().parents
