"""Pipelines by name, as a shell sees them: one folder, no source and no JVM."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.cli import ENTRY, INCLUDE, Desk
from tidegate.config.loader import load_pipeline

TEXT = (
    "pipeline_id: shop\n"
    "source: {database: d, port: 1, password: '${NOT_SET}', tables: [public.orders]}\n"
)


@pytest.fixture
def shell(desk: Callable[..., Desk]) -> Desk:
    """A working directory with a file that is no pipeline of the folder yet."""
    made = desk(HOME="/nowhere")
    (made.folder / "mine.yaml").write_text(TEXT)
    return made


def test_a_pipelines_life_by_name(shell: Desk) -> None:
    assert shell.result("list", code=2)["code"] == "config.no_folder"
    made = shell.result("create", "mine.yaml", "--offline")
    assert made["file"] == "include/config/pipelines/shop.yaml"
    assert shell.result("create", "mine.yaml", "--offline", code=2)["code"] == "pipelines.exists"
    (row,) = shell.result("list")["pipelines"]
    assert (row["pipeline_id"], row["state"], row["deployed"]) == ("shop", "running", False)
    assert shell.result("describe", "shop")["slot"] == "tidegate_shop"
    assert "did you mean shop?" in shell.result("describe", "shpo", code=2)["hint"]

    stopped = shell.run("stop", "shop", "--reason", "moving house")
    assert stopped.returncode == 0 and "keeps its WAL" in stopped.stdout
    assert shell.result("describe", "shop")["running"]["reason"] == "moving house"
    assert "stopped by" in shell.run("status", "shop", "--offline").stdout
    quiet = shell.run("sweep", "shop", NOT_SET="x")
    assert quiet.returncode == 0, quiet.stderr
    assert quiet.stdout.startswith("stopped  pipeline shop was stopped by")
    assert "tidegate start shop" in quiet.stdout and quiet.stderr == ""
    assert shell.result("start", "shop")["state"] == "running"
    actions = [entry["action"] for entry in shell.result("audit", "shop")["entries"]]
    assert actions == ["start", "stop", "create"]

    offsets = shell.result("offsets", "shop")
    assert offsets["captured_through"] is None
    assert shell.result("delete", "shop", code=2)["code"] == "cli.not_confirmed"
    assert shell.result("delete", "shop", "--yes")["status"] == "deleted"
    assert shell.result("list")["pipelines"] == []
    assert "tidegate init" in shell.run("list").stdout


def test_a_stopped_pipelines_verbs_end_well_as_json(shell: Desk) -> None:
    shell.run("stop", "mine.yaml")
    done = shell.run("run", "mine.yaml", "--once", "--json", NOT_SET="x")
    document = json.loads(done.stdout)
    assert done.returncode == 0 and document["ok"] is True
    assert document["result"]["status"] == "stopped"


def test_health_and_doctor_need_no_pipeline(shell: Desk) -> None:
    healthy = shell.result("health")
    assert healthy["status"] == "ok"
    assert [part["name"] for part in healthy["components"]] == ["catalog", "storage"]
    away = shell.run("health", "mine.yaml", "--json", NOT_SET="x")
    assert away.returncode == 1
    assert json.loads(away.stdout)["result"]["status"] == "failed"
    told = shell.run("doctor", "mine.yaml", NOT_SET="x")
    assert told.returncode == 3
    for name in ("java", "jars", "ports", "disk", "catalog", "storage", "source", "airflow"):
        assert f"\n{name}" in f"\n{told.stdout}"


def test_init_writes_a_file_that_loads_and_names_no_secret(shell: Desk) -> None:
    words = ("init", "--pipeline-id", "fresh", "--database", "shop", "--offline")
    done = shell.result(*words, "-t", "public.orders", "-t", 'public."odd.name"')
    assert done["file"] == "fresh.yaml"
    file = shell.folder / "fresh.yaml"
    loaded = load_pipeline(file, resolve_secrets=False)
    assert loaded.source.tables == ("public.orders", 'public."odd.name"')
    assert loaded.source.password.get_secret_value() == "${CDC_SOURCE_PASSWORD}"
    assert sum(line.startswith("#") for line in file.read_text().splitlines()) > 5
    done = shell.run("validate", "fresh.yaml", "--offline", CDC_SOURCE_PASSWORD="x")
    assert done.returncode == 0, done.stderr
    assert shell.result(*words, code=2)["code"] == "init.exists"
    assert shell.result("init", "--database", "d", code=2)["code"] == "init.not_asked"
    wrong = ("init", "--pipeline-id", "No Name", "--database", "d", "--offline")
    assert shell.result(*wrong, code=2)["code"] == "init.answer"
    needs = shell.result("init", "--pipeline-id", "other", "--database", "d", code=2)
    assert needs["code"] == "init.no_password"


def test_init_asks_on_a_terminal(shell: Desk) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, "init", "--offline"],
        cwd=shell.folder,
        env=os.environ | {"TERM": "dumb", "PYTHONPATH": str(INCLUDE)},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ) as process:
        os.close(slave)
        os.write(master, b"asked\ndb.example\n5433\nshop\n\n\n")
        said = b""
        while True:
            try:
                more = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            said += more
            if not more:
                break
        assert process.wait(60) == 0, said
    os.close(master)
    assert b"Name of the pipeline" in said and b"Port [5432]" in said
    source = load_pipeline(shell.folder / "asked.yaml", resolve_secrets=False).source
    assert (source.host, source.port, source.username) == ("db.example", 5433, "cdc_user")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(shell: Desk, name: str) -> None:
    done = shell.run("completion", name)
    assert done.returncode == 0 and "_TIDEGATE_COMPLETE" in done.stdout, done.stderr


def test_a_shell_completes_verbs_options_and_pipelines(shell: Desk) -> None:
    shell.run("create", "mine.yaml", "--offline")

    def completed(line: str) -> list[str]:
        asked = {
            "_TIDEGATE_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        }
        # Completion ends the process as the shell library likes it: a process of its own.
        return subprocess.run(
            [sys.executable, "-c", ENTRY],
            cwd=shell.folder,
            env=os.environ | asked | {"PYTHONPATH": str(INCLUDE)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        ).stdout.split()

    assert completed("tidegate sta") == ["start", "status"]
    assert completed("tidegate offsets se") == ["set"]
    assert completed("tidegate status sh") == ["shop"]
    assert completed("tidegate status mi") == ["mine.yaml"]
    assert "--watch" in completed("tidegate status --wa")
