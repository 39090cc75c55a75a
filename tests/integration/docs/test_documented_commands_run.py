"""Every shell block of the README, the guides and the runbooks runs, in order, or says why not.

What needs no JVM runs by default; the whole is ``long``:
``python -m pytest tests/integration/docs -m long``.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.page.conftest import serving
from tests.support.api import CLIENT
from tests.support.cli import Shell, configured
from tests.support.documented import PAGES, ROOT, Command, commands, until_it_speaks
from tests.support.postgres import SourceDatabase
from tidegate.testing.postgres_server import PASSWORD, SUPERUSER, PostgresServer

pytestmark = pytest.mark.postgres

COMMANDS = {page: list(commands(page)) for page in PAGES}
RUNNABLE = {page: told for page in PAGES if (told := [c for c in COMMANDS[page] if not c.not_run])}
NOT_RUN = {
    "make demo",
    "make test",
    "curl",
    "airflow dags trigger",
    "airflow backfill create",
    "tidegate conformance --source mysql",
    "tidegate schema register P",
    "tidegate schemas P --registry",
}
"""How the commands begin that a marker keeps from running."""
FROM_NOTHING = {
    "README.md",
    "command-line.md",
    "first-pipeline.md",
    "from-debezium.md",
    "from-olake-airbyte.md",
}
"""Pages that deploy the pipeline themselves."""
SPARK = re.compile(
    r"tidegate (run|sweep|verify|maintain|reload|recover|offsets set|lakehouse|schema approve"
    r"|dead-letters (show|redrive))\b"
)
"""What starts a JVM, or looks at what only one can write."""
ASKS = re.compile(r"tidegate (offsets set(?!.*--dry-run)|delete|lakehouse rollback)\b")
STAYS = re.compile(r"--follow|--watch")
REFUSED = {"tidegate delete shop": 1}  # as its comment says
_numbers = itertools.count(1)


class World:
    """A shop's database, its pipeline's files as the pages name them, and a shell."""

    def __init__(self, shell: Shell, server: PostgresServer, root: Path, *, spark: bool) -> None:
        self.spark = spark
        self._shell, self._server, self._root = shell, server, root
        self._database: SourceDatabase | None = None

    def begin(self, **schema_changes: str) -> None:
        """Everything anew."""
        self.end()
        self._flows = False
        number = next(_numbers)
        self.source = self._database = SourceDatabase(
            self._server, self._server.create_database(f"documented{number}")
        )
        self.source.sql(
            "CREATE TABLE customers (id int PRIMARY KEY, name text)",
            "CREATE TABLE orders"
            " (id int PRIMARY KEY, v int, a text, due date, created_at timestamptz)",
            "INSERT INTO customers SELECT n, 'c' || n FROM generate_series(1, 20) n",
            "INSERT INTO orders SELECT n, n, 'x', NULL, '2026-03-02' FROM generate_series(1, 50) n",
        )
        self.folder = self._root / str(number)
        pipelines = self.folder / "include" / "config" / "pipelines"
        pipelines.mkdir(parents=True)
        made = configured(self.folder, self.source, "public.customers", "public.orders")
        described = yaml.safe_load(made.file.read_text())
        described["source"]["password"] = "${SHOP_PASSWORD}"
        orders: dict[str, Any] = {
            "columns": {"due": {"policy": "reject"}},
            "reload": {"time_column": "created_at"},
        }
        if schema_changes:
            orders["schema_changes"] = schema_changes
        sink = {
            "sink_id": "lake",
            "sink_type": "iceberg",
            "iceberg": {"tables": {"public.orders": orders}},
        }
        described["sinks"] = [sink]
        for name in ("shop", "orders"):
            text = yaml.safe_dump({**described, "pipeline_id": name})
            (pipelines / f"{name}.yaml").write_text(text)
        made.file.write_text(yaml.safe_dump({**described, "pipeline_id": "shop"}))
        self.variables = {
            "TIDEGATE_PLATFORM_FILE": str(self.folder / "platform.yaml"),
            **dict.fromkeys(("SHOP_PASSWORD", "ORDERS_PASSWORD", "CDC_SOURCE_PASSWORD"), PASSWORD),
        }

    def end(self) -> None:
        if self._database is not None:
            self._database.drop()
            self._database = None

    def tidegate(self, *words: str, code: int | None = 0) -> str:
        done = self._shell.run(list(words), self.folder, self.variables)
        assert code is None or done.returncode == code, str(done)
        return done.stdout

    def asked(self, *words: str) -> Any:
        return json.loads(self.tidegate(*words, "--json"))["result"]

    def flow(self, *statements: str) -> None:
        """Changes come in, as far as this world can take them."""
        self.source.sql(*statements)
        words = ("run", "shop", "--once") if self.spark else ("capture", "shop")
        self.tidegate(*words, code=None)  # ends with 1 where a table is held, which may be wanted

    def ready(self, page: Path) -> None:
        """What the page takes for granted."""
        if page.name in FROM_NOTHING or self._flows:
            return
        self._flows = not self.spark  # without Spark, the pages share one world
        self.tidegate("deploy", "shop")
        self.flow()
        self.flow("UPDATE orders SET a = 'y' WHERE id = 7", "DELETE FROM orders WHERE id = 8")
        if page.name == "dead-letters.md":
            self.flow("UPDATE orders SET due = 'infinity' WHERE id = 9")

    def before(self, text: str) -> None:
        """What the sentence before a command takes for granted."""
        held = "ALTER TABLE orders ALTER v TYPE text", "INSERT INTO orders VALUES (100, '7')"
        if text == "tidegate validate shop.yaml":
            (self.folder / "include" / "config" / "pipelines" / "shop.yaml").unlink()
        elif text == "tidegate offsets shop":
            self.flow()
            self.flow("UPDATE orders SET a = 'y' WHERE id = 7")
        elif text.endswith("approve P --table public.orders --dry-run"):
            self.flow(*held)
        elif text.endswith("--cast v=int"):
            self.begin()
            self.tidegate("deploy", "shop")
            self.flow()
            self.flow(*held)
        elif text.endswith("--rename a=b"):
            self.begin(rename="hold")
            self.tidegate("deploy", "shop")
            self.flow()
            self.flow("ALTER TABLE orders RENAME a TO b", "INSERT INTO orders VALUES (100, 7)")

    def words(self, text: str) -> list[str]:
        """The command with the pipeline, the places and the answers that a person would give."""
        words = ["shop" if word == "P" else word for word in shlex.split(text)[1:]]
        if text == "tidegate init":
            source = ("--host", "127.0.0.1", "--port", str(self._server.port))
            words += ["--pipeline-id", "shop", *source, "--username", SUPERUSER, "--all-tables"]
            words += ["--database", self.source.name]
        words += ["--yes"] if ASKS.match(text) else []
        words += ["--from", "beginning"] if "--follow" in words else []
        return [self._place(word, words) for word in words]

    def _place(self, word: str, words: list[str]) -> str:
        if re.fullmatch(r"0/[0-9A-F]{4,}", word):
            offsets = self.asked("offsets", "shop")
            lowest = {one["table"]: one["lowest"] for one in offsets["tables"]}["public.orders"]
            return str(lowest if words[1] == "set" else offsets["captured_through"])
        if word == "ID":
            return str(self.asked("dead-letters", "list", "shop")["letters"][0]["event_id"])
        if word == "…":
            found = self.asked("lakehouse", "snapshots", "shop", "--table", "public.orders")
            stands = [one for one in found["snapshots"] if one["position"] and one["on_main"]]
            return str(stands[-1]["snapshot_id"])
        return word

    def run(self, command: Command) -> None:
        text = command.text
        if not text.startswith("tidegate "):
            environment(text, self.variables)
            return
        self.before(text)
        words = self.words(text)
        if words[0] == "serve":
            with serving(self.folder, command=words) as served:  # it answered
                assert CLIENT.get(f"{served.url}healthz").status_code == 200
            return
        if STAYS.search(text):
            code, said = until_it_speaks(words, self.folder, self.variables)
        else:
            done = self._shell.run(words, self.folder, self.variables)
            code, said = done.returncode, done.stdout + done.stderr
        assert code == REFUSED.get(text, 0), f"{command} ({words})\n{said}"


def environment(text: str, variables: dict[str, str]) -> None:
    """Lines that prepare a shell: the interpreter is there, the variable is known."""
    for part in text.split(" && "):
        exported = re.fullmatch(r"export (\w+)=…", part)
        assert part == ". .venv/bin/activate" or exported, f"{part}: run it, or mark its block"
        assert exported is None or exported[1] in variables, text
        assert (Path(sys.prefix) / "bin" / "activate").is_file()


def test_what_is_not_run_is_marked_and_known() -> None:
    marked = {c.text for told in COMMANDS.values() for c in told if c.not_run}
    unknown = {text for text in marked if not text.startswith(tuple(NOT_RUN))}
    assert unknown == set()
    gone = {start for start in NOT_RUN if not any(text.startswith(start) for text in marked)}
    assert gone == set()
    fenced = re.compile(r"^[ ]*```(\w*)\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)
    for page in PAGES:
        for language, body in fenced.findall(page.read_text(encoding="utf-8")):
            shown = re.search(r"^\s*(\$ )?tidegate ", body, re.MULTILINE)
            assert not shown or language in ("bash", "console"), f"{page}: {body}"


def test_what_needs_no_spark_runs(shell: Shell, postgres: PostgresServer, tmp_path: Path) -> None:
    world = World(shell, postgres, tmp_path, spark=False)
    alone = ROOT / "docs" / "guides" / "command-line.md"
    ran = 0
    for page in (alone, *(page for page in RUNNABLE if page != alone)):
        if ran == 0 or page == next(iter(RUNNABLE)):
            world.begin()
        world.ready(page)
        for command in RUNNABLE[page]:
            if not SPARK.match(command.text):
                world.run(command)
                ran += 1
    world.end()
    assert ran > 30


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_every_command_of_the_page_runs(
    shell: Shell, postgres: PostgresServer, tmp_path: Path, page: Path
) -> None:
    world = World(shell, postgres, tmp_path, spark=True)
    world.begin()
    world.ready(page)
    for command in RUNNABLE[page]:
        world.run(command)
    world.end()
