"""Records what Debezium itself says of the stories in ``story.py``. Not run in continuous
integration: it fetches 50 MB from Maven and starts a JVM (a JDK: the source is run as it is).

    PYTHONPATH=include:. .venv/bin/python tests/integration/connectors/debezium/record_debezium.py

It writes ``postgres.json``, ``mariadb.json`` and, where ``TIDEGATE_MYSQL_HOME`` names a MySQL 8.0,
``mysql.json`` beside itself. Debezium's embedded engine runs with its defaults, but for
``skipped.operations`` (truncates are wanted) and ``tombstones.on.delete``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.integration.connectors.debezium.story import DONE, MYSQL, POSTGRES, Story
from tidegate.testing import mariadb_server, postgres_server
from tidegate.testing.maven import _ivy, java

VERSION: Final = "3.5.0.Final"
HERE: Final = Path(__file__).parent
DATABASE: Final = "shop"
PREFIX: Final = "cdc"
SECONDS: Final = 120.0
_MODULE: Final = """\
<ivy-module version="2.0"><info organisation="tidegate" module="record"/>
<configurations><conf name="default"/></configurations><dependencies>
{dependencies}</dependencies></ivy-module>
"""
_SETTINGS: Final = """\
<ivysettings><settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>
"""
_WANTED: Final = (
    *(
        ("io.debezium", f"debezium-{name}", VERSION)
        for name in ("embedded", "connector-postgres", "connector-mysql", "connector-mariadb")
    ),
    ("org.slf4j", "slf4j-simple", "2.0.16"),
)


def fetch(into: Path) -> None:
    """Debezium and all that it needs."""
    dependencies = "".join(
        f'<dependency org="{group}" name="{name}" rev="{version}"'
        ' conf="default->runtime,master,compile"/>\n'
        for group, name, version in _WANTED
    )
    settings, module = into / "settings.xml", into / "ivy.xml"
    settings.write_text(_SETTINGS)
    module.write_text(_MODULE.format(dependencies=dependencies))
    command = [java(), "-cp", str(_ivy()), "org.apache.ivy.Main", "-settings", str(settings)]
    command += ["-ivy", str(module), "-retrieve", f"{into}/[artifact]-[revision].[ext]"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def record(server: Any, story: Story, jars: Path, settings: dict[str, str]) -> list[Any]:
    """The events of ``story``, as Debezium prints them."""
    run = _runner(server)
    run(story.before)
    with tempfile.TemporaryDirectory(prefix="tidegate-debezium-") as name:
        folder = Path(name)
        known = {**_shared(folder, server), **settings}
        (folder / "settings").write_text("".join(f"{k}={v}\n" for k, v in known.items()))
        command = [java(), "-cp", f"{jars}/*", str(HERE / "RecordEnvelopes.java")]
        command += [str(folder / "settings"), str(folder / "events")]
        with (folder / "log").open("wb") as log:
            engine = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait(engine, folder, lambda events: len(events) >= 2)
            time.sleep(3)  # the snapshot is over, and the stream begins, without a word
            for transaction in story.after:
                run(transaction)
            run((f"INSERT INTO {DONE} VALUES (1)",))
            events = _wait(engine, folder, lambda events: _table(events[-1]) == DONE)
        finally:
            engine.terminate()
            engine.wait(timeout=60)
    return [event for event in events if _table(event) in story.tables]


def _shared(folder: Path, server: Any) -> dict[str, str]:
    return {
        "name": "record",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "converter.schemas.enable": "false",
        "topic.prefix": PREFIX,
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "skipped.operations": "none",
        "tombstones.on.delete": "false",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(folder / "history"),
        "include.schema.changes": "false",
    }


def _runner(server: Any) -> Any:
    def run(statements: tuple[str, ...]) -> None:
        connection = server.connect(DATABASE)
        cursor = connection.cursor()
        cursor.execute("BEGIN")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("COMMIT")
        connection.close()

    return run


def _table(event: Any) -> str | None:
    value = event["value"] or {}
    return (value.get("source") or {}).get("table")


def _wait(engine: subprocess.Popen[bytes], folder: Path, enough: Any) -> list[Any]:
    deadline = time.monotonic() + SECONDS
    while True:
        file = folder / "events"
        lines = file.read_text().splitlines() if file.exists() else []
        events = [json.loads(line) for line in lines]
        if events and enough(events):
            return events
        if engine.poll() is not None or time.monotonic() > deadline:
            raise SystemExit((folder / "log").read_text()[-6000:])
        time.sleep(0.2)


def keep(name: str, system: str, events: list[Any]) -> None:
    kept = {"debezium": VERSION, "system": system, "events": events}
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    (HERE / f"{name}.json").write_text(text + "\n")
    sys.stdout.write(f"{name}: {len(events)} events of {system}\n")


def _postgres(jars: Path) -> None:
    with postgres_server.running(16) as server:
        server.create_database(DATABASE)
        settings = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "database.user": postgres_server.SUPERUSER,
            "database.password": postgres_server.PASSWORD,
            "database.dbname": DATABASE,
        }
        events = record(server, POSTGRES, jars, settings)
        with server.connect(DATABASE) as connection:
            version = connection.execute("SHOW server_version").fetchone()[0]
    keep("postgres", f"PostgreSQL {version}", events)


def _mysql(jars: Path, flavour: Any) -> None:
    with mariadb_server.running(flavour) as server:
        server.execute(f"CREATE DATABASE {DATABASE}")
        own = {
            "mariadb": {
                "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
                "database.ssl.mode": "disable",
            },
            "mysql": {
                "connector.class": "io.debezium.connector.mysql.MySqlConnector",
                "database.ssl.mode": "disabled",
                "database.allowPublicKeyRetrieval": "true",
                "driver.allowPublicKeyRetrieval": "true",
            },
        }[flavour]
        settings = {
            **own,
            "database.user": mariadb_server.USER,
            "database.password": mariadb_server.PASSWORD,
            "database.server.id": "5401",
            "database.include.list": DATABASE,
        }
        events = record(server, MYSQL, jars, settings)
        version = server.execute("SELECT version()")[0][0]
    keep(flavour, f"{flavour} {version}", events)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tidegate-jars-") as name:
        jars = Path(os.environ.get("DEBEZIUM_JARS") or name)
        if not os.environ.get("DEBEZIUM_JARS"):
            fetch(jars)
        _postgres(jars)
        _mysql(jars, "mariadb")
        if os.environ.get(mariadb_server.MYSQL_HOME):
            _mysql(jars, "mysql")


if __name__ == "__main__":
    main()
