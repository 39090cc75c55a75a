"""Archives from Maven, for servers that tests start: by the Ivy that comes with Spark."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import SetupError

# Maven's central repository is what Ivy's resolver takes by itself; poms are left out because an
# archive with everything in it needs nothing of what they list.
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tidegate" module="testing"/>
  <dependencies>
    <dependency org="{group}" name="{name}" rev="{version}" transitive="false">
      <artifact name="{name}" type="{kind}" ext="{kind}" m:classifier="{classifier}"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True, slots=True)
class Archive:
    """``group:name:version:classifier:kind``, as Maven writes it."""

    group: str
    name: str
    version: str
    classifier: str
    kind: str

    def __str__(self) -> str:
        return ":".join((self.group, self.name, self.version, self.classifier, self.kind))


def java() -> str:
    """The Java that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def fetch(archive: Archive, into: Path) -> Path:
    """The archive as a file below ``into``; from Ivy's cache if it was fetched before."""
    with tempfile.TemporaryDirectory(prefix="tidegate-ivy-") as name:
        settings, module = Path(name, "ivysettings.xml"), Path(name, "ivy.xml")
        settings.write_text(_SETTINGS)
        module.write_text(
            _MODULE.format(
                group=archive.group,
                name=archive.name,
                version=archive.version,
                classifier=archive.classifier,
                kind=archive.kind,
            )
        )
        command = [java(), "-cp", str(_ivy()), "org.apache.ivy.Main", "-settings", str(settings)]
        command += ["-ivy", str(module), "-retrieve", f"{into}/[artifact].[ext]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = into / f"{archive.name}.{archive.kind}"
    if done.returncode != 0 or not found.exists():
        raise SetupError(
            "testing.archive",
            f"{archive} could not be fetched: {(done.stdout + done.stderr).strip()[-400:]}",
            hint="give Ivy a network, or put the archive into its cache",
        )
    return found


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    jars = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    for jar in sorted(jars.glob("ivy-*.jar")) if jars else ():
        return jar
    raise SetupError(
        "testing.ivy", "pyspark brings no Ivy", hint="pip install pyspark, as requirements.txt has"
    )
