"""The command line as a shell sees it: real processes, exit codes, what stdout holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SPEC_EXAMPLE = ROOT / "tests/unit/config/data/spec_example.yaml"
ENTRY = "import sys; from tidegate.cli.main import main; main(sys.argv[1:])"
VERBS = [
    ["validate"],
    ["deploy"],
    ["undeploy"],
    ["capture"],
    ["apply"],
    ["sweep"],
    ["maintain"],
    ["verify"],
    ["reload", "--from", "2026-03-01", "--to", "2026-03-02"],
    ["run"],
    ["status"],
    ["lag"],
    ["audit"],
    ["guard"],
    ["recover"],
    ["describe"],
    ["start"],
    ["stop"],
    ["delete"],
    ["snapshot"],
    ["health"],
    ["doctor"],
    ["consume"],
    ["offsets", "show"],
    ["offsets", "set"],
    ["gate", "show"],
    ["gate", "hold"],
    ["gate", "open"],
    ["dead-letters", "list"],
    ["dead-letters", "show"],
    ["dead-letters", "redrive"],
    ["dead-letters", "discard"],
    ["schema", "leave"],
    ["schema", "register"],
    ["lakehouse", "snapshots"],
    ["lakehouse", "query"],
    ["lakehouse", "rollback"],
]


@pytest.fixture
def tidegate(tmp_path: Path) -> Any:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT / "include"),
        "PYTHONWARNINGS": "error",
    }

    def call(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", ENTRY, *map(str, arguments)],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_takes_the_file_platform_json_and_debug(tidegate: Any, verb: list[str]) -> None:
    done = tidegate(*verb, "--help", COLUMNS="200")
    assert done.returncode == 0, done.stderr
    for option in ("PIPELINE", "--platform-config", "--json", "--debug"):
        assert option in done.stdout


@pytest.mark.parametrize(
    "verb",
    [
        ["undeploy"],
        ["create"],
        ["delete"],
        ["offsets", "set"],
        ["sweep"],
        ["recover"],
        ["maintain"],
        ["lakehouse", "rollback"],
        ["dead-letters", "redrive"],
        ["dead-letters", "discard"],
    ],
)
def test_long_and_destructive_verbs_have_a_dry_run(tidegate: Any, verb: list[str]) -> None:
    assert "--dry-run" in tidegate(*verb, "--help", COLUMNS="200").stdout


def imported(folder: Path, *words: str) -> set[str]:
    """What one command, as the console script starts it, has imported when it ends."""
    script = (
        "import sys\n"
        "from tidegate.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, 'it failed'\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "include"), "CDC_SOURCE_PASSWORD": "x"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


FOR_NOTHING = {"airflow", "fastapi", "jinja2", "pandas", "psycopg", "pyspark", "sqlglot"}


def test_help_imports_no_library_but_its_own(tmp_path: Path) -> None:
    found = imported(tmp_path, "--help")
    heavy = FOR_NOTHING | {"pyiceberg", "pyarrow", "pydantic", "sqlalchemy", "yaml", "numpy"}
    assert heavy & {name.partition(".")[0] for name in found} == set()
    assert len(found) < 420, "each module is half a millisecond"


def test_a_look_at_the_lake_imports_what_reads_it_and_no_more(tmp_path: Path) -> None:
    pipeline = tmp_path / "shop.yaml"
    pipeline.write_text(
        "pipeline_id: shop\nsource: {database: d, port: 1, password: x, tables: [public.orders]}\n"
    )
    (tmp_path / "include" / "config" / "pipelines").mkdir(parents=True)
    for words in (("status", pipeline, "--offline"), ("gate", "show", pipeline), ("list",)):
        found = imported(tmp_path, *map(str, words))
        assert "pyiceberg.io.pyarrow" in found, "it has read the lake"
        assert FOR_NOTHING & {name.partition(".")[0] for name in found} == set()
        assert len(found) < 1000


def test_the_specifications_example_is_valid_offline(tidegate: Any) -> None:
    done = tidegate("validate", SPEC_EXAMPLE, "--offline")
    assert done.returncode == 0, done.stderr
    assert "transport embedded" in done.stdout
    assert "webhook-notifications" in done.stdout, "a sink that is not built yet is pointed out"


def test_validate_json_is_one_document(tidegate: Any) -> None:
    document = json.loads(tidegate("validate", SPEC_EXAMPLE, "--offline", "--json").stdout)
    assert document["ok"] is True
    assert document["command"] == "validate"
    assert document["result"]["tables"] == ["public.customers", "public.orders"]


def test_a_wrong_file_ends_with_2_and_names_everything(tidegate: Any, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("pipeline_id: demo\nkafka: {}\nsource: {databse: x, port: 0}\n")
    done = tidegate("validate", wrong, "--offline")
    assert done.returncode == 2
    assert done.stdout == ""
    for text in ("wrong.yaml:2", "belongs to platform.yaml", "source.databse", "nearest  database"):
        assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_of_both_files_come_together(tidegate: Any, tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text("pipeline_id: demo\n")
    (tmp_path / "platform.yaml").write_text("sprak: {}\n")
    done = tidegate("validate", "pipeline.yaml", "--offline", "--json")
    assert done.returncode == 2
    problems = json.loads(done.stdout)["error"]["problems"]
    assert [(p["file"], p["path"]) for p in problems] == [
        ("pipeline.yaml", "source"),
        ("platform.yaml", "sprak"),
    ]
    assert problems[1]["nearest"] == "spark"


def test_an_error_has_three_lines_and_a_code(tidegate: Any) -> None:
    done = tidegate("status", "nowhere.yaml")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line.split()[0] for line in lines] == ["error", "why", "do"]
    assert "[config.file_missing]" in lines[0]


def test_debug_adds_where_it_happened(tidegate: Any) -> None:
    assert "document.py" in tidegate("status", "nowhere.yaml", "--debug").stderr


def test_wrong_arguments_end_with_2_also_as_json(tidegate: Any) -> None:
    plain = tidegate("validate")
    assert plain.returncode == 2
    assert "[cli.usage]" in plain.stderr
    document = tidegate("validate", "--no-such-option", "--json")
    assert document.returncode == 2
    assert json.loads(document.stdout)["error"]["code"] == "cli.usage"


def test_colours_are_off_when_piped(tidegate: Any) -> None:
    done = tidegate("validate", SPEC_EXAMPLE, "--offline")
    assert "\x1b" not in done.stdout + done.stderr


def test_a_table_the_pipeline_does_not_take_is_refused(tidegate: Any) -> None:
    done = tidegate("gate", "show", SPEC_EXAMPLE, "--table", "public.custmers")
    assert done.returncode == 2
    assert "control.unknown_table" in done.stderr


def test_nothing_is_removed_without_a_yes(tidegate: Any) -> None:
    done = tidegate("undeploy", SPEC_EXAMPLE, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "cli.not_confirmed"


def test_looking_at_the_lake_needs_no_password(tidegate: Any, tmp_path: Path) -> None:
    pipeline = tmp_path / "pipeline.yaml"
    pipeline.write_text(
        "pipeline_id: demo\nsource: {database: d, password: '${NOT_SET}', tables: [public.t]}\n"
    )
    done = tidegate("lakehouse", "snapshots", pipeline, "--json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["result"] == {"snapshots": []}


def test_the_version_is_printed(tidegate: Any) -> None:
    assert tidegate("--version").stdout.startswith("tidegate ")


def test_no_output_shows_a_secret_of_a_file(tidegate: Any, tmp_path: Path) -> None:
    """The rule itself is proven key by key in tests/unit/config/test_shown.py."""
    canary = "c4nary-never-shown"
    url = f"https://ann:{canary}@host/path?token={canary}"
    text = (
        f"pipeline_id: planted\nowner: {url}\nsource: {{host: '{url}', database: '{url}',"
        f" username: '{url}', password: {canary}, tables: [a.b], options: {{key: {canary}}}}}\n"
    )
    (tmp_path / "planted.yaml").write_text(text)
    (tmp_path / "broken.yaml").write_text(text.replace("options", f"port: '{url}', options"))
    described = tidegate("describe", "planted.yaml", "--json")
    refused = tidegate("validate", "broken.yaml", "--debug")
    assert json.loads(described.stdout)["result"]["host"] == "https://…@host/path?token=…"
    assert refused.returncode == 2 and "source.port" in refused.stderr
    for done in (described, refused):
        assert canary not in done.stdout + done.stderr
