"""Loading configuration: what is accepted, and that a wrong file is answered in full."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tidegate.config.loader import load_pipeline, load_platform, platform_file
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.problems import ConfigProblems, Problem
from tidegate.config.secrets import Secrets
from tidegate.config.sinks import SinkType, WriteMode
from tidegate.connectors.settings import SourceSettings
from tidegate.errors import ConfigError, ExitCode, exit_code, from_dict

SPEC_EXAMPLE = Path(__file__).parent / "data" / "spec_example.yaml"
MINIMAL = "pipeline_id: demo\nsource: {password: unused, database: shop, tables: [public.orders]}\n"


def written(folder: Path, text: str, name: str = "pipeline.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path, *, platform: bool = False) -> dict[str, Problem]:
    with pytest.raises(ConfigProblems) as caught:
        load_platform(path) if platform else load_pipeline(path)
    return {problem.path: problem for problem in caught.value.problems}


def test_the_specifications_example_validates_unchanged() -> None:
    pipeline = load_pipeline(SPEC_EXAMPLE)
    assert pipeline.source.tables == ("public.customers", "public.orders")
    assert [sink.sink_type for sink in pipeline.sinks] == list(SinkType)
    assert pipeline.sinks[2].iceberg is not None
    assert pipeline.sinks[2].iceberg.write_mode is WriteMode.APPEND
    assert pipeline.lake.write_mode is WriteMode.UPSERT, "a disabled sink does not shape the lake"


def test_everything_that_can_have_a_default_has_one(tmp_path: Path) -> None:
    pipeline = load_pipeline(written(tmp_path, MINIMAL))
    assert (pipeline.slot_name, pipeline.publication_name) == ("tidegate_demo", "tidegate_demo")
    assert pipeline.targets[0].identifier == ("demo", "orders")


def test_every_problem_is_reported_at_once_with_file_line_and_nearest_key(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """\
pipeline_id: Demo-X
source:
  databse: shop
  port: 99999
  sslmode: none
  tables: [public.a, a.b.c]
  username: ${MISSING_USER}
sinks:
  - {sink_id: a, sink_type: webhook}
  - {sink_id: a, sink_type: iceberg, iceberg: {write_mode: upsrt, tables: {public.zzz: {}}}}
schedules: {changes: often}
""",
    )
    problems = refused(path)
    assert set(problems) == {
        "pipeline_id",
        "source.databse",
        "source.database",
        "source.port",
        "source.sslmode",
        "source.tables[1]",
        "source.username",
        "sinks[0].webhook",
        "sinks[1].iceberg.write_mode",
        "schedules.changes",
    }
    assert {problem.file for problem in problems.values()} == {str(path)}
    unknown = problems["source.databse"]
    assert (unknown.line, unknown.nearest) == (3, "database")
    port = problems["source.port"]
    assert (port.line, port.found, port.allowed) == (4, "99999", "65535 or less")
    assert "verify-full" in str(problems["source.sslmode"].allowed)


def test_checks_between_keys_speak_although_single_keys_are_wrong(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """\
pipeline_id: demo
source: {port: 0, tables: [a.t, b.t]}
sinks:
  - {sink_id: x, sink_type: iceberg, iceberg: {tables: {a.other: {}}}}
  - {sink_id: x, sink_type: iceberg}
""",
    )
    assert set(refused(path)) == {
        "source.database",
        "source.password",
        "source.port",
        "sinks[0].iceberg.table_name",
        "sinks[0].iceberg.tables.a.other",
        "sinks[1].sink_id",
        "sinks[1].enabled",
    }


@pytest.mark.parametrize("key", ["kafka", "connector", "dlq", "transport_mode", "retry", "spark"])
def test_a_platform_key_in_a_pipeline_file_is_sent_to_the_other_file(
    tmp_path: Path, key: str
) -> None:
    problems = refused(written(tmp_path, MINIMAL + f"{key}: {{}}\n"))
    assert problems[key].message == "the key belongs to platform.yaml"
    assert problems[key].nearest == f"{key} in platform.yaml"


@pytest.mark.parametrize("key", ["source", "sinks", "pipeline_id"])
def test_a_pipeline_key_in_a_platform_file_is_sent_to_the_other_file(
    tmp_path: Path, key: str
) -> None:
    problems = refused(written(tmp_path, f"{key}: x\n"), platform=True)
    assert problems[key].message == "the key belongs to pipeline.yaml"


def test_a_key_in_the_wrong_section_is_sent_to_the_right_one(tmp_path: Path) -> None:
    problems = refused(written(tmp_path, "chunk_rows: 5000\n"), platform=True)
    assert problems["chunk_rows"].nearest == "sweep.chunk_rows in platform.yaml"


def test_duplicate_keys_are_refused_with_both_lines(tmp_path: Path) -> None:
    problems = refused(written(tmp_path, "pipeline_id: a\n" + MINIMAL))
    assert problems["pipeline_id"].line == 2
    assert "first on line 1" in problems["pipeline_id"].message


def test_merge_keys_and_anchors_are_plain_yaml(tmp_path: Path) -> None:
    text = """\
pipeline_id: demo
source: {password: unused, database: shop, tables: [public.a, public.b]}
sinks:
  - sink_id: lake
    sink_type: iceberg
    iceberg:
      tables:
        public.a: &mode {write_mode: history, sort_by: [id]}
        public.b: {<<: *mode, sort_by: [name]}
"""
    first, second = load_pipeline(written(tmp_path, text)).targets
    assert (first.write_mode, first.sort_by) == (WriteMode.HISTORY, ("id",))
    assert (second.write_mode, second.sort_by) == (WriteMode.HISTORY, ("name",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("- a\n", "the file is not a mapping of keys to values"),
        ("a: [1, 2\nb: 3\n", "wrong YAML"),
        ("a: !python/object:os.system x\n", "wrong YAML"),
        ("pipeline_id: &x [*x]\n", "an alias that contains itself"),
        ("{a: 1}: 2\n", "wrong YAML: a key that is not text"),
    ],
)
def test_what_is_not_a_mapping_is_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    assert any(message in p.message for p in refused(written(tmp_path, text)).values())


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_bytes(b"pipeline_id: \xff\n")
    assert "not UTF-8" in refused(path)[""].message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_pipeline(tmp_path / "none.yaml")
    assert caught.value.code == "config.file_missing"


def test_variables_defaults_and_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T_DB", "shop")
    monkeypatch.setenv("T_PORT", "6543")
    monkeypatch.setenv("T_EMPTY", "")
    monkeypatch.delenv("T_NONE", raising=False)
    text = """\
pipeline_id: demo
source:
  database: ${T_DB}_${T_NONE:-x}
  port: ${T_PORT}
  username: ${T_EMPTY:-fallback}
  password: a$$b$c
"""
    source = load_pipeline(written(tmp_path, text)).source
    assert (source.database, source.port, source.username) == ("shop_x", 6543, "fallback")
    assert source.password.get_secret_value() == "a$b$c"


def test_a_variable_that_is_not_set_is_named_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("T_NONE", raising=False)
    path = written(tmp_path, "pipeline_id: demo\nsource: {database: d, password: '${T_NONE}'}\n")
    problem = refused(path)["source.password"]
    assert "T_NONE is not set" in problem.message
    assert problem.line == 2


def test_half_a_variable_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "pipeline_id: demo\nsource: {password: unused, database: 'x${Y'}\n")
    assert refused(path)["source.database"].message == "not a variable"


def test_parsing_without_secrets_leaves_them_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T_PASSWORD", "hunter2")
    monkeypatch.delenv("T_NONE", raising=False)
    text = """\
pipeline_id: demo
source:
  {database: '${T_NONE}', port: '${T_NONE}', slot_name: '${T_NONE}', password: '${T_PASSWORD}'}
"""
    source = load_pipeline(written(tmp_path, text), resolve_secrets=False).source
    assert source.password.get_secret_value() == "${T_PASSWORD}"
    assert (source.database, source.port, source.slot_name) == ("${T_NONE}", 5432, None)


@pytest.mark.parametrize(
    "line",
    [
        "source: {password: unused, database: d, pasword: hunter2}",
        "source: {database: d, password: [hunter2]}",
        "source: {database: d, password: {hunter2: 1}}",
        "source: {password: unused, database: d, port: '${T_SECRET}'}",
        "source: {database: d, password: *hunter2}",
        "source: {database: d, password: !hunter2 x}",
        "source: {database: d, password: 'hunter2}",
        "source: hunter2\nsinks: [{sink_id: a, sink_type: webhook, webhook: {url: [hunter2]}}]",
        "source: {password: unused, database: d}\n"
        "sinks: [{sink_id: a, sink_type: webhook, webhook: {headers:"
        " {Authorization: [hunter2]}}}]",
    ],
)
def test_no_error_shows_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("T_SECRET", "hunter2")
    with pytest.raises(ConfigProblems) as caught:
        load_pipeline(written(tmp_path, f"pipeline_id: demo\n{line}\n"))
    shown = str(caught.value) + repr(caught.value.to_dict()) + repr(caught.value.__cause__)
    assert "hunter2" not in shown


def test_problems_survive_pickling_and_job_results(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblems) as caught:
        load_pipeline(written(tmp_path, "pipeline_id: demo\n"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.problems == caught.value.problems
    assert exit_code(from_dict(caught.value.to_dict())) is ExitCode.VALIDATION


def test_a_later_version_of_the_file_names_what_is_needed(tmp_path: Path) -> None:
    problem = refused(written(tmp_path, "version: 2\n" + MINIMAL))["version"]
    assert "does not read this version" in problem.message


def test_name_templates_know_schema_and_table_only(tmp_path: Path) -> None:
    sink = "sinks: [{sink_id: l, sink_type: iceberg, iceberg: {table_name: '{catalog}_{table}'}}]"
    problem = refused(written(tmp_path, MINIMAL + sink))["sinks[0].iceberg.table_name"]
    assert "{schema} and {table}" in problem.message


def test_without_a_platform_file_the_defaults_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_PLATFORM_FILE", raising=False)
    platform = load_platform(None)
    assert platform.lake.home == str(tmp_path / ".tidegate")
    assert platform.spark == PlatformConfig().spark


def test_platform_files_are_looked_for_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_PLATFORM_FILE", raising=False)
    (tmp_path / "include/config").mkdir(parents=True)
    written(tmp_path, "version: 1\n", "include/config/platform.yaml")
    assert platform_file() == Path("include/config/platform.yaml")
    written(tmp_path, "version: 1\n", "platform.yaml")
    assert platform_file() == Path("platform.yaml")
    monkeypatch.setenv("TIDEGATE_PLATFORM_FILE", "/elsewhere/p.yaml")
    assert platform_file() == Path("/elsewhere/p.yaml")
    assert platform_file("mine.yaml") == Path("mine.yaml")


def test_relative_paths_of_a_platform_file_are_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    text = "lake: {home: ../state, warehouse: s3://bucket/w, catalog: {uri: cat.db}}\n"
    (tmp_path / "etc").mkdir()
    lake = load_platform(written(tmp_path, text, "etc/platform.yaml")).lake
    assert lake.home == str(tmp_path / "state")
    assert lake.warehouse == "s3://bucket/w"
    assert lake.catalog.uri == str(tmp_path / "etc/cat.db")


def test_models_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        PlatformConfig().health_port = 1  # type: ignore[misc]
    assert PipelineConfig.model_config["extra"] == "forbid"


SINK = "sinks: [{sink_id: a, sink_type: postgres, enabled: true, postgres: {database: d, %s}}]\n"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("source: {database: d}", "source.password"),
        ("source: {database: d, source_type: mysql}", "source.password"),
        ("source: {database: d, password: null}", "source.password"),
        ('source: {database: d, password: ""}', None),
        ("source: {database: d, connection_id: shop_db}", None),
        ("source: {database: d, password: x}\n" + SINK % "target_table: t", "sinks[0].postgres"),
        ("source: {database: d, password: x}\n" + SINK % "target_table: t, password: x", None),
        (
            "source: {database: d, password: x}\n"
            + (SINK % "target_table: t").replace("true", "false"),
            None,
        ),
    ],
)
def test_nothing_has_a_password_that_was_not_given(
    tmp_path: Path, text: str, missing: str | None
) -> None:
    path = written(tmp_path, f"pipeline_id: demo\n{text}\n")
    if missing is None:
        assert "cdc_password" not in str(load_pipeline(path).model_dump())
    else:
        (place,) = refused(path)
        assert place.startswith(missing)


def test_a_connection_without_a_password_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, "pipeline_id: demo\nsource: {database: d, connection_id: shop_db}\n")
    with pytest.raises(ConfigError) as caught:
        SourceSettings.of(load_pipeline(path), PlatformConfig(), Secrets(host="db"))
    assert caught.value.code == "secrets.no_password" and "shop_db" in caught.value.message
