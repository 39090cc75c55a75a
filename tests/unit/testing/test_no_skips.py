"""``CI=true`` turns a skipped test into a failure; an expected failure stays one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pytest

@pytest.mark.skip(reason="no server")
def test_marked(): pass

def test_skips_itself(): pytest.skip("no server")

@pytest.mark.xfail(reason="known", strict=True)
def test_known(): raise AssertionError

def test_passes(): pass
"""


def outcome(folder: Path, ci: str) -> tuple[int, dict[str, int]]:
    (folder / "test_suite.py").write_text(SUITE)
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.no_skips", str(folder)]
    command += ["-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider"]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1]
    return done.returncode, {kind: int(n) for n, kind in re.findall(r"(\d+) ([a-z]+)", last)}


@pytest.mark.parametrize(
    ("ci", "code", "counts"),
    [
        ("true", 1, {"failed": 1, "error": 1, "passed": 1, "xfailed": 1}),
        ("false", 0, {"skipped": 2, "passed": 1, "xfailed": 1}),
    ],
)
def test_skips_fail_in_ci_only(tmp_path: Path, ci: str, code: int, counts: dict[str, int]) -> None:
    assert outcome(tmp_path, ci) == (code, counts)
