"""The example outside the tree, found by its entry point as an installed package is, passes too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tidegate import __version__

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "sqlite-connector"


def install(into: Path) -> None:
    """What an installer leaves: the package and its metadata. Built by hand, for no network."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    for package in project["tool"]["setuptools"]["packages"]:
        shutil.copytree(EXAMPLE / package, into / package)
    name, version = project["project"]["name"], project["project"]["version"]
    notes = into / f"{name.replace('-', '_')}-{version}.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = project["project"]["entry-points"]
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (notes / "entry_points.txt").write_text("\n".join(lines) + "\n")


def test_the_example_connector_passes_the_suite(tmp_path: Path) -> None:
    install(tmp_path / "site")
    path = os.pathsep.join([str(tmp_path / "site"), str(ROOT / "include")])
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    command += ["-c", str(EXAMPLE / "pyproject.toml"), "--rootdir", str(EXAMPLE), str(EXAMPLE)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, f"Tidegate {__version__}\n{done.stdout[-4000:]}{done.stderr}"
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
