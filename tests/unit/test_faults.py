"""Fault points kill the process where they stand, and only there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate import faults

LIBRARY = Path(faults.__file__).parent


def _run(fault: str, body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"from tidegate.faults import point\n{body}"],
        env={"TIDEGATE_FAULT": fault, "PYTHONPATH": str(LIBRARY.parent)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_process_dies_at_the_named_point_without_cleanup() -> None:
    done = _run(
        "apply.after_commit",
        "try:\n point('apply.after_lease'); print('on', flush=True); point('apply.after_commit')\n"
        "finally:\n print('cleanup', flush=True)",
    )
    assert done.returncode == faults.EXIT_STATUS
    assert done.stdout == "on\n"


def test_the_third_time() -> None:
    done = _run(
        "sweep.after_chunk:3", "for i in range(5): print(i, flush=True); point('sweep.after_chunk')"
    )
    assert done.stdout.split() == ["0", "1", "2"]


def test_raise_is_not_an_exception_that_handlers_catch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_FAULT", "deploy.after_slot@raise")
    with pytest.raises(faults.Fault):
        faults.point("deploy.after_slot")
    assert not issubclass(faults.Fault, Exception)


def test_every_named_point_stands_in_the_code_and_every_call_is_named() -> None:
    calls = set()
    for file in LIBRARY.rglob("*.py"):
        calls |= set(re.findall(r"\bpoint\(\s*\"([a-z_.]+)\"", file.read_text()))
    assert calls == set(faults.POINTS)
