"""End a process and everything under it."""

from __future__ import annotations

from typing import Final

import psutil

GRACE_SECONDS: Final = 3.0
"""Airflow kills a task process 5 s after SIGTERM: by then the tree must be gone."""


def end_tree(pid: int, grace: float = GRACE_SECONDS) -> int:
    """SIGTERM to the whole tree, SIGKILL to what is left after ``grace``; how many there were.

    ``spark-submit`` is a JVM whose child is the Python driver: ending only the first leaves the
    driver running (seen), so descendants are listed before anything is signalled.
    """
    tree = _tree(pid)
    for process in tree:
        _signal(process, hard=False)
    _, alive = psutil.wait_procs(tree, timeout=grace)
    # A process that was forked meanwhile hangs below one that is still alive.
    late = [process for parent in alive for process in _tree(parent.pid)]
    for process in {*alive, *late}:
        _signal(process, hard=True)
    psutil.wait_procs([*alive, *late], timeout=1.0)
    return len(tree)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _signal(process: psutil.Process, *, hard: bool) -> None:
    try:
        process.kill() if hard else process.terminate()
    except psutil.NoSuchProcess:
        return
