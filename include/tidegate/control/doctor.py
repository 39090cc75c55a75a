"""Doctor: can this machine run Tidegate, and if not, what to do about it (I10)."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.health import (
    AIRFLOW_VARIABLE,
    FAILED,
    OK,
    check_airflow,
    check_catalog,
    check_storage,
)
from tidegate.control.validation import ERROR, INFO, validate_pipeline
from tidegate.errors import TidegateError
from tidegate.lake.catalog import home
from tidegate.lake.jars import jars
from tidegate.observability.quantities import human_bytes

WARN: Final = "warn"
SKIPPED: Final = "skipped"
JAVA_AT_LEAST: Final = 17
"""What Spark 4 runs on."""
DISK_AT_LEAST: Final = 2 * 1024**3
"""Spark spills here, and a batch is written twice before the old files expire."""
_JAVA_SECONDS: Final = 20.0
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_IVY: Final = (Path(".ivy2.5.2"), Path(".ivy2"), Path(".m2", "repository"))


@dataclass(frozen=True, slots=True)
class Check:
    """One look, and what to do where it is not well."""

    name: str
    status: str  # ok | warn | failed | skipped
    detail: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every check, in the order in which one would set a machine up."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return not any(check.status == FAILED for check in self.checks)


def doctor(platform: PlatformConfig, pipeline: PipelineConfig | None = None) -> Diagnosis:
    """Look at everything; one failure hides no other."""
    looks: list[Callable[[], Check]] = [
        _java,
        _spark,
        lambda: _jars(platform, pipeline),
        lambda: _ports(platform),
        lambda: _disk(platform),
        lambda: _component("catalog", platform, pipeline),
        lambda: _component("storage", platform, pipeline),
    ]
    checks = [look() for look in looks]
    checks += _source(platform, pipeline)
    checks.append(_airflow())
    return Diagnosis(tuple(checks))


def _java() -> Check:
    java = _java_command()
    fix = f"install a Java {JAVA_AT_LEAST} runtime (Debian: openjdk-17-jre-headless), set JAVA_HOME"
    if java is None:
        return Check("java", FAILED, "no java on the path, and JAVA_HOME names none", fix)
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("java", FAILED, f"{java} does not run ({type(error).__name__})", fix)
    match = _VERSION.search(done.stderr + done.stdout)
    if match is None:
        return Check("java", WARN, f"{java} does not say its version", fix)
    version = int(match[1])
    state = OK if version >= JAVA_AT_LEAST else FAILED
    return Check("java", state, f"Java {version} ({java})", None if state == OK else fix)


def _java_command() -> str | None:
    given = os.environ.get("JAVA_HOME")
    if given and (Path(given) / "bin" / "java").is_file():
        return str(Path(given) / "bin" / "java")
    return shutil.which("java")


def _spark() -> Check:
    try:
        found = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return Check("spark", FAILED, "pyspark is not installed", "make setup")
    if not found.startswith("4.1."):
        fix = "install pyspark 4.1: Iceberg's runtime is built for it"
        return Check("spark", FAILED, f"pyspark {found}", fix)
    return Check("spark", OK, f"pyspark {found}")


def _jars(platform: PlatformConfig, pipeline: PipelineConfig | None) -> Check:
    """Whether the first session need not fetch anything. Asks no registry."""
    wanted = jars(platform, pipeline)
    places = [Path.home() / place for place in _IVY]
    given = platform.spark.conf.get("spark.jars.ivy")
    places += [Path(given)] if given else []
    missing = [jar for jar in wanted if not any(_cached(place, jar) for place in places)]
    if missing:
        fix = "the first Spark session fetches them; without internet run `make setup` beforehand"
        return Check("jars", WARN, f"not cached: {', '.join(missing)}", fix)
    return Check("jars", OK, f"{len(wanted)} cached")


def _cached(place: Path, coordinates: str) -> bool:
    group, artifact, version = coordinates.split(":")[:3]
    ivy = place / "jars" / f"{group}_{artifact}-{version}.jar"
    maven = place / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.jar"
    return ivy.is_file() or maven.is_file()


def _ports(platform: PlatformConfig) -> Check:
    """The health server's; Spark and capture choose free ones by themselves."""
    port = platform.health_port
    if not platform.health_enabled:
        return Check("ports", SKIPPED, "health_enabled is false: no port is served")
    if port == 0:
        return Check("ports", OK, "health_port 0: any free one is taken")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((platform.health_host, port))
        except OSError:
            fix = "end what listens there, or set health_port in platform.yaml"
            return Check("ports", WARN, f"health_port {port} is in use", fix)
    return Check("ports", OK, f"health_port {port} is free")


def _disk(platform: PlatformConfig) -> Check:
    place = home(platform)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    told = f"{human_bytes(free)} free at {place}"
    if not os.access(place, os.W_OK):
        return Check("disk", FAILED, f"{place} cannot be written", "change its owner or lake.home")
    if free < DISK_AT_LEAST:
        fix = f"free some: Spark wants {human_bytes(DISK_AT_LEAST)} to sort and to rewrite files"
        return Check("disk", WARN, told, fix)
    return Check("disk", OK, told)


def _component(name: str, platform: PlatformConfig, pipeline: PipelineConfig | None) -> Check:
    look = check_catalog if name == "catalog" else check_storage
    part = look(platform, pipeline)
    return Check(name, part.status, part.detail, part.hint)


def _source(platform: PlatformConfig, pipeline: PipelineConfig | None) -> Iterator[Check]:
    if pipeline is None:
        yield Check("source", SKIPPED, "no pipeline was named", "tidegate doctor PIPELINE")
        return
    try:
        report = validate_pipeline(pipeline, platform)
    except TidegateError as error:
        yield Check("source", FAILED, f"{error.message} [{error.code}]", error.hint)
        return
    for finding in report.findings:
        if finding.severity == INFO:
            continue  # how things are, nothing to do
        state = FAILED if finding.severity == ERROR else WARN
        told = f"{finding.table}: {finding.message}" if finding.table else finding.message
        yield Check("source", state, f"{told} [{finding.code}]", finding.fix)
    if report.ok:
        yield Check("source", OK, f"{pipeline.source.database}: {len(report.tables)} tables ready")


def _airflow() -> Check:
    try:
        version = metadata.version("apache-airflow")
    except metadata.PackageNotFoundError:
        return Check("airflow", SKIPPED, "not installed here: `tidegate run` needs none")
    url = os.environ.get(AIRFLOW_VARIABLE)
    if not url or not urlsplit(url).scheme:
        fix = f"set {AIRFLOW_VARIABLE} to its address to have it checked"
        return Check("airflow", SKIPPED, f"Airflow {version}, not asked", fix)
    part = check_airflow(url)
    return Check("airflow", part.status, f"Airflow {version}: {part.detail}", part.hint)
