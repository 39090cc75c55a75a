"""Who is certainly gone, and who only may be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tidegate.lake.owner import host, is_gone, me


def test_this_process_is_here() -> None:
    assert not is_gone(me())


def test_an_ended_process_is_gone() -> None:
    child = subprocess.run(
        [sys.executable, "-c", "from tidegate.lake.owner import me; print(me())"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": "include"},
    )
    owner = child.stdout.strip()
    assert owner.startswith(host())
    assert is_gone(owner)


def test_a_zombie_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stat = Path(f"/proc/{child.pid}/stat").read_text()
    start = stat.rpartition(")")[2].split()[19]
    owner = f"{host()}:{child.pid}:{start}"
    assert not is_gone(owner)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, not yet reaped
    assert is_gone(owner)
    child.wait()
    assert child.stdin is not None
    child.stdin.close()


def test_a_reused_pid_is_another_process() -> None:
    where, pid, start = me().rsplit(":", 2)
    assert is_gone(f"{where}:{pid}:{int(start) + 1}")


def test_another_hosts_process_is_never_certainly_gone() -> None:
    assert not is_gone("elsewhere-12345678:1:1")
    assert not is_gone("garbage")
