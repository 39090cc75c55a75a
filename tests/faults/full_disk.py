"""A warehouse that has no room left.

Where this process may mount, a small tmpfs lies over a directory and is filled to the brim: the
real ENOSPC. Elsewhere a limit on file sizes is set on the processes that write (EFBIG), which is
how quotas look to them.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

SIZE = 64 * 1024 * 1024
LEFT = 16 * 1024
"""Bytes left when full: metadata files of a few KB may pass, data does not."""
FILE_LIMIT = 2 * 1024


class SmallDisk(Protocol):
    @contextmanager
    def full(self, *writers: int) -> Iterator[None]:
        """No room for the length of the block; ``writers`` are the processes that write."""
        ...


class Mounted:
    """A tmpfs of :data:`SIZE`."""

    def __init__(self, directory: Path) -> None:
        self._filler = directory / "filler"

    @contextmanager
    def full(self, *writers: int) -> Iterator[None]:
        room = os.statvfs(self._filler.parent)
        with self._filler.open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, room.f_bavail * room.f_frsize - LEFT)
        try:
            yield
        finally:
            self._filler.unlink()


class Limited:
    """A limit on the size of every file that the writers write."""

    @contextmanager
    def full(self, *writers: int) -> Iterator[None]:
        before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in writers}
        try:
            for pid, (_, hard) in before.items():
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_LIMIT, hard))
            yield
        finally:
            for pid, limits in before.items():
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


@contextmanager
def small_disk(directory: Path) -> Iterator[SmallDisk]:
    """A disk of its own under ``directory`` (which must be empty), if that is allowed here."""
    directory.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0777", "tidegate-test"]
    mounted = subprocess.run([*command, str(directory)], capture_output=True, check=False)
    if mounted.returncode != 0:
        yield Limited()
        return
    try:
        yield Mounted(directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
