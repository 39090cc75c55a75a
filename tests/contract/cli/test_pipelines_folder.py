"""Pipelines by name, as a shell sees them: one folder, real processes, no source and no JVM."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tidegate.config.loader import load_pipeline

ROOT = Path(__file__).parents[3]
ENTRY = "import sys; from tidegate.cli.main import main; main(sys.argv[1:])"
TEXT = (
    "pipeline_id: shop\n"
    "source: {database: d, port: 1, password: '${NOT_SET}', tables: [public.orders]}\n"
)


class Shell:
    """A working directory with a pipelines folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT / "include"),
            "PYTHONWARNINGS": "error",
        }
        (folder / "mine.yaml").write_text(TEXT)

    def __call__(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", ENTRY, *words],
            cwd=self.folder,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def result(self, *words: str, code: int = 0) -> Any:
        done = self(*words, "--json")
        assert done.returncode == code, done.stdout + done.stderr
        document = json.loads(done.stdout)
        return document["result" if document["ok"] else "error"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_pipelines_life_by_name(shell: Shell) -> None:
    assert shell.result("list", code=2)["code"] == "config.no_folder"
    made = shell.result("create", "mine.yaml", "--offline")
    assert made["file"] == "include/config/pipelines/shop.yaml"
    assert shell.result("create", "mine.yaml", "--offline", code=2)["code"] == "pipelines.exists"
    (row,) = shell.result("list")["pipelines"]
    assert (row["pipeline_id"], row["state"], row["deployed"]) == ("shop", "running", False)
    assert shell.result("describe", "shop")["slot"] == "tidegate_shop"
    assert "did you mean shop?" in shell.result("describe", "shpo", code=2)["hint"]

    stopped = shell("stop", "shop", "--reason", "moving house")
    assert stopped.returncode == 0 and "keeps its WAL" in stopped.stdout
    assert shell.result("describe", "shop")["running"]["reason"] == "moving house"
    quiet = shell("sweep", "shop", NOT_SET="x")
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
    assert "tidegate init" in shell("list").stdout


def test_a_stopped_pipelines_verbs_end_well_as_json(shell: Shell) -> None:
    shell("stop", "mine.yaml")
    done = shell("run", "mine.yaml", "--once", "--json", NOT_SET="x")
    document = json.loads(done.stdout)
    assert done.returncode == 0 and document["ok"] is True
    assert document["result"]["status"] == "stopped"


def test_health_and_doctor_need_no_pipeline(shell: Shell) -> None:
    healthy = shell.result("health")
    assert healthy["status"] == "ok"
    assert [part["name"] for part in healthy["components"]] == ["catalog", "storage"]
    away = shell("health", "mine.yaml", "--json", NOT_SET="x")
    assert away.returncode == 1
    assert json.loads(away.stdout)["result"]["status"] == "failed"
    told = shell("doctor", "mine.yaml", NOT_SET="x")
    assert told.returncode == 3
    for name in ("java", "jars", "ports", "disk", "catalog", "storage", "source", "airflow"):
        assert f"\n{name}" in f"\n{told.stdout}"


def test_init_writes_a_file_that_loads_and_names_no_secret(shell: Shell) -> None:
    words = ("init", "--pipeline-id", "fresh", "--database", "shop", "--offline")
    done = shell.result(*words, "-t", "public.orders", "-t", 'public."odd.name"')
    assert done["file"] == "fresh.yaml"
    file = shell.folder / "fresh.yaml"
    loaded = load_pipeline(file, resolve_secrets=False)
    assert loaded.source.tables == ("public.orders", 'public."odd.name"')
    assert loaded.source.password.get_secret_value() == "${CDC_SOURCE_PASSWORD}"
    assert sum(line.startswith("#") for line in file.read_text().splitlines()) > 5
    assert shell("validate", "fresh.yaml", "--offline", CDC_SOURCE_PASSWORD="x").returncode == 0
    assert shell.result(*words, code=2)["code"] == "init.exists"
    assert shell.result("init", "--database", "d", code=2)["code"] == "init.not_asked"
    wrong = ("init", "--pipeline-id", "No Name", "--database", "d", "--offline")
    assert shell.result(*wrong, code=2)["code"] == "init.answer"
    needs = shell.result("init", "--pipeline-id", "other", "--database", "d", code=2)
    assert needs["code"] == "init.no_password"


def test_init_asks_on_a_terminal(shell: Shell) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, "init", "--offline"],
        cwd=shell.folder,
        env=shell.environment | {"TERM": "dumb"},
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
def test_every_shell_gets_a_script(shell: Shell, name: str) -> None:
    done = shell("completion", name)
    assert done.returncode == 0 and "_TIDEGATE_COMPLETE" in done.stdout, done.stderr


def test_a_shell_completes_verbs_options_and_pipelines(shell: Shell) -> None:
    shell("create", "mine.yaml", "--offline")

    def completed(line: str) -> list[str]:
        asked = {
            "_TIDEGATE_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        }
        return shell(**asked).stdout.split()

    assert completed("tidegate sta") == ["start", "status"]
    assert completed("tidegate offsets se") == ["set"]
    assert completed("tidegate status sh") == ["shop"]
    assert completed("tidegate status mi") == ["mine.yaml"]
    assert "--watch" in completed("tidegate status --wa")
