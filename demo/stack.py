"""Start and stop the demo's servers: the shop's, Airflow's PostgreSQL, and Airflow's four parts."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from demo import airflow_config, places, shops
from demo.airflow_api import AirflowApi
from demo.pipeline import write_pipeline
from demo.processes import Processes
from tidegate.errors import SetupError
from tidegate.testing.postgres_server import PASSWORD, PostgresServer
from tidegate.testing.server_user import placed

AIRFLOW: Final = str(places.ROOT / ".venv" / "bin" / "airflow")
POSTGRES: Final = "postgres"
WRITER: Final = "writer"
READY_SECONDS: Final = 180.0

# The log servers would listen on every interface; on one machine the files are read directly.
COMPONENTS: Final[dict[str, tuple[str, ...]]] = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "triggerer": ("triggerer", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}

Say = Callable[[str], None]


class Stack:
    """One stack per checkout. State that must outlive it is under ``.tidegate/demo``."""

    def __init__(self, say: Say, source: str | None = None) -> None:
        """``source`` as it was before, unless told."""
        self._say = say
        self.processes = Processes(places.STATE_FILE, places.LOGS)
        self.keys = airflow_config.Keys.load(places.HOME / "keys.json")
        self.settings = _settings(source)
        self.server = PostgresServer(
            places.POSTGRES_DATA,
            port=self.settings["postgres_port"],
            config={"max_connections": "200", "max_slot_wal_keep_size": "4GB"},
        )
        self.shop = shops.of(self.settings["source"], self.server, self.settings)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings['airflow_port']}"

    @property
    def env(self) -> dict[str, str]:
        """What every process of the stack sees beside the caller's environment."""
        return {
            **os.environ,
            "AIRFLOW_HOME": str(places.AIRFLOW_HOME),
            "PYTHONPATH": os.pathsep.join((str(places.ROOT / "include"), str(places.ROOT))),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "NO_PROXY": "127.0.0.1,localhost",
            "TIDEGATE_PLATFORM_FILE": str(places.PLATFORM_FILE),
            "TIDEGATE_PIPELINES_DIR": str(places.PIPELINES),
            "SHOP_CDC_PASSWORD": PASSWORD,
        }

    def start(self, *, changes_schedule: str | None = None) -> dict[str, int]:
        """Everything up and answering; the answer is the shop's rows per table."""
        write_pipeline(self.shop, changes_schedule=changes_schedule)
        airflow_config.write(
            self.keys, port=self.settings["airflow_port"], postgres_port=self.server.port
        )
        self._start_postgres()
        with ThreadPoolExecutor(1) as pool:  # the shop fills up while Airflow migrates
            rows = pool.submit(self._fill_shop)
            self._migrate()
            for name, arguments in COMPONENTS.items():
                self.processes.start(name, (AIRFLOW, *arguments), self.env, cwd=places.ROOT)
            shop_rows = rows.result()
        self._say(f"shop database: {sum(shop_rows.values()):,} rows in {len(shop_rows)} tables")
        self.api = AirflowApi(self.url, airflow_config.USER, self.keys.password)
        self._wait_for_airflow()
        return shop_rows

    def start_writer(self, per_second: float) -> None:
        command = [sys.executable, "-m", "demo.writer", "--per-second", str(per_second)]
        command += ["--stats", str(places.HOME / "writer.json"), "--source", self.shop.kind]
        env = {**self.env, **self.shop.environment}
        self.processes.start(WRITER, command, env, cwd=places.ROOT)

    def stop_writer(self) -> dict[str, int]:
        """The answer is what it wrote, by kind."""
        self.processes.stop(WRITER)
        written: dict[str, int] = json.loads((places.HOME / "writer.json").read_text())
        return written

    def stop(self) -> None:
        """Stop what this checkout started, and nothing else."""
        running = self.processes.running()
        first = [name for name in running if name != POSTGRES]  # MariaDB's SIGTERM is clean
        with ThreadPoolExecutor(len(first) or 1) as pool:
            list(pool.map(self.processes.stop, first))
        self.processes.stop(POSTGRES, signal.SIGINT)  # fast shutdown

    def _start_postgres(self) -> None:
        self.server.start()
        pid = self.server.pid
        assert pid is not None
        self.processes.adopt(POSTGRES, pid)
        self._say(f"PostgreSQL {self.server.version} on 127.0.0.1:{self.server.port}")
        with self.server.connect() as admin:
            exists = "SELECT 1 FROM pg_database WHERE datname = %s"
            if not admin.execute(exists, (airflow_config.DATABASE,)).fetchone():
                self.server.create_database(airflow_config.DATABASE)

    def _fill_shop(self) -> dict[str, int]:
        pid = self.shop.start()
        if self.shop.kind != POSTGRES:
            self.processes.adopt(self.shop.kind, pid)
            self._say(f"{self.shop.system()} on 127.0.0.1:{self.shop.port}")
        return self.shop.create()

    def _migrate(self) -> None:
        log = self.processes.log("migrate")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            done = subprocess.run(
                [AIRFLOW, "db", "migrate"], env=self.env, stdout=out, stderr=out, check=False
            )
        if done.returncode != 0:
            raise _broken("the Airflow database could not be made", "migrate", log.read_text())

    def _wait_for_airflow(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        ready: set[str] = set()
        while len(ready) < len(COMPONENTS):
            for name in COMPONENTS:
                if name not in self.processes.running():
                    log = self.processes.log(name).read_text(errors="replace")
                    raise _broken(f"Airflow's {name} ended", name, log)
            for name in sorted(self.api.healthy() - ready):
                ready.add(name)
                self._say(f"Airflow {name} is up")
            if time.monotonic() > deadline:
                missing = ", ".join(sorted(set(COMPONENTS) - ready))
                raise _broken(f"Airflow was not ready in time: {missing}", "scheduler", "")
            time.sleep(0.25)  # polling servers that are starting


def wipe() -> None:
    """Forget an earlier demo: its database, lake, logs. Only with nothing running."""
    data = (placed(places.POSTGRES_DATA), placed(places.MYSQL_DATA))
    for directory in (*data, places.HOME):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory)


def running() -> list[str]:
    """Processes of an earlier start that still live."""
    return sorted(Processes(places.STATE_FILE, places.LOGS).running())


def refuse_second() -> None:
    """One stack at a time: two would write the same files."""
    names = running()
    if names:
        raise SetupError(
            "demo.running",
            f"a stack of this checkout is running already: {', '.join(names)}",
            hint="make down stops it",
        )


def refuse_other(source: str | None) -> None:
    """What is there is of one source."""
    file = places.SETTINGS_FILE
    known = json.loads(file.read_text()).get("source") if file.exists() else None
    if source and known and source != known:
        raise SetupError(
            "demo.other_source",
            f"the data of the last demo is of {known}",
            hint=f"make demo SOURCE={source} begins anew (KEEP=1 leaves it running), or make up"
            f" SOURCE={known}",
        )


@contextlib.contextmanager
def stopped_afterwards(stack: Stack, *, keep: bool) -> Iterator[Stack]:
    """Stop the stack when the block ends, however it ends; ``keep`` leaves a good one running."""
    try:
        yield stack
    except BaseException:
        stack.stop()
        raise
    if not keep:
        stack.stop()


def _settings(source: str | None) -> dict[str, Any]:
    """Ports stay the same from one start to the next where they are still free."""
    file = places.SETTINGS_FILE
    known = json.loads(file.read_text()) if file.exists() else {}
    if running():
        return dict(known)
    settings = {
        "airflow_port": places.port(known.get("airflow_port", places.AIRFLOW_PORT)),
        "postgres_port": places.port(known.get("postgres_port", places.POSTGRES_PORT)),
        "mysql_port": places.port(known.get("mysql_port", places.MYSQL_PORT)),
        "source": source or known.get("source", shops.KINDS[0]),
    }
    places.HOME.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings))
    return settings


def _broken(message: str, name: str, log: str) -> SetupError:
    tail = "\n".join(log.strip().splitlines()[-15:])
    return SetupError(
        "demo.start", f"{message}\n{tail}", hint=f"see {places.LOGS / name}.log for the rest"
    )
