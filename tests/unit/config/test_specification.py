"""The platform specification's keys: every one is accepted, and each has the test of its effect.

A key that is read names a test that shows what it does; one that nothing reads is said by
`tidegate validate`. A key of our own models that no code reads is found here too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidegate.config.effects import UNUSED
from tidegate.config.keys import keys
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, RetryConfig, TransportMode
from tidegate.control.validation import validate_pipeline
from tidegate.lake.evolution import POLICY_OF
from tidegate.transports.embedded import backoff

ROOT = Path(__file__).parents[3]
INCLUDE = ROOT / "include/tidegate"
HERE = "unit/config/test_specification.py"
SAID = f"{HERE}::test_validate_says_which_keys_have_no_effect"
NOT_BUILT = "integration/postgres/test_deploy.py::test_what_is_not_built_is_refused"
RETRY = f"{HERE}::test_waits_follow_every_key_of_retry"
LOADER = "unit/config/test_loader.py"
CLI_DAY = "integration/postgres/test_cli_day.py"
MAINTAIN = "integration/postgres/test_maintain.py"
UPKEEP = "contract/lake/test_upkeep.py"
DEPLOY = "integration/postgres/test_deploy.py"
LETTERS = "integration/postgres/test_dead_letters.py"
MODES = "integration/postgres/test_sweep_modes.py"
EVENTS = "contract/control/test_log_events.py"
CATALOG = "contract/lake/test_catalog.py::test_a_sink_may_name_its_own_catalog_and_warehouse"
EITHER = (
    "contract/lake/test_schema_approve.py"
    "::test_either_file_stops_the_pipeline_and_the_pipelines_own_word_wins"
)
WHOLE_DAY = f"{CLI_DAY}::test_from_init_to_delete"
DUE = f"{MAINTAIN}::test_only_what_is_due_is_done_and_the_reasons_are_said"
PORT = "unit/cli/test_health_port.py"
UPKEEP_KEYS = "sinks[].iceberg.maintenance"
WEBHOOK = ("url", "method", "headers", "timeout_seconds")
POSTGRES = ("host", "port", "database", "target_table", "batch_size", "upsert")
DEFINED = {"config/platform.py", "config/sinks.py", "config/source.py", "config/schema_changes.py"}
"""Where models stand: a key is not read by being defined."""

PLATFORM = {
    "transport_mode": NOT_BUILT,
    "kafka.bootstrap_servers": SAID,
    "kafka.schema_registry_url": (
        "unit/config/test_registry_settings.py::test_the_address_is_the_registrys_own_or_kafkas"
    ),
    "kafka.group_id": SAID,
    "kafka.auto_offset_reset": SAID,
    "kafka.enable_idempotence": SAID,
    "kafka.acks": SAID,
    "kafka.topic_num_partitions": SAID,
    "kafka.topic_replication_factor": SAID,
    "connector.connect_url": SAID,
    "connector.timeout_seconds": SAID,
    "connector.retry_max_attempts": SAID,
    "connector.retry_wait_seconds": SAID,
    "max_buffered_messages": SAID,
    "schema_monitor_interval_seconds": SAID,
    "lag_monitor_interval_seconds": (
        f"{EVENTS}::test_lag_is_said_inside_a_round_however_long_it_takes"
    ),
    "stop_on_incompatible_schema": EITHER,
    "health_port": f"{PORT}::test_a_command_that_lives_is_asked_on_the_port_of_the_file",
    "health_enabled": f"{PORT}::test_health_that_is_switched_off_is_not_served",
    "dlq.enabled": (
        f"{LETTERS}::test_a_value_that_is_too_large_is_a_letter_and_no_sweep_chokes_on_it"
    ),
    "dlq.topic_suffix": SAID,
    "dlq.max_retries": SAID,
    "dlq.include_headers": (
        f"{LETTERS}::test_a_sweep_supersedes_letters_with_its_snapshot_and_not_before"
    ),
    "retry.max_attempts": (
        "contract/control/test_run_stopped.py::test_a_capture_is_tried_as_often_as_the_file_says"
    ),
    "retry.initial_wait_seconds": RETRY,
    "retry.max_wait_seconds": RETRY,
    "retry.multiplier": RETRY,
    "retry.jitter": RETRY,
}

PIPELINE = {
    "pipeline_id": f"{LOADER}::test_everything_that_can_have_a_default_has_one",
    "topic_prefix": "contract/control/test_health.py::test_health_has_the_specifications_form",
    "source.source_type": (
        "integration/mysql/test_pipeline.py"
        "::test_rows_that_change_during_a_sweep_arrive_once_and_right"
    ),
    "source.host": WHOLE_DAY,
    "source.port": WHOLE_DAY,
    "source.database": WHOLE_DAY,
    "source.username": WHOLE_DAY,
    "source.password": (
        "integration/postgres/test_validate.py"
        "::test_wrong_password_is_a_config_error_that_does_not_show_it"
    ),
    "source.tables": f"{DEPLOY}::test_tables_follow_the_file",
    "source.slot_name": f"{DEPLOY}::test_second_deploy_changes_nothing",
    "source.snapshot_mode": (
        "contract/lake/test_retention.py::test_a_table_that_is_never_swept_keeps_the_whole_log"
    ),
    "sinks[].sink_id": f"{EVENTS}::test_what_could_not_be_written_is_an_error_that_names_the_sink",
    "sinks[].sink_type": NOT_BUILT,
    "sinks[].enabled": f"{LOADER}::test_the_specifications_example_validates_unchanged",
    **{f"sinks[].webhook.{key}": NOT_BUILT for key in WEBHOOK},
    **{f"sinks[].postgres.{key}": NOT_BUILT for key in POSTGRES},
    "sinks[].iceberg.catalog_uri": CATALOG,
    "sinks[].iceberg.warehouse": CATALOG,
    "sinks[].iceberg.table_name": f"{LOADER}::test_name_templates_know_schema_and_table_only",
    "sinks[].iceberg.write_mode": f"{MODES}::test_append_adds_every_row_once_more_as_read",
    "sinks[].iceberg.batch_size": SAID,
    "sinks[].iceberg.auto_create_table": (
        f"{MODES}::test_without_auto_create_table_a_lake_table_must_exist"
    ),
    f"{UPKEEP_KEYS}.enabled": f"{UPKEEP}::test_switched_off_means_nothing_is_due",
    f"{UPKEEP_KEYS}.expire_snapshots_interval_seconds": DUE,
    f"{UPKEEP_KEYS}.expire_snapshots_older_than_seconds": (
        f"{UPKEEP}::test_snapshots_expire_by_age_but_the_last_ones_and_heads_stay"
    ),
    f"{UPKEEP_KEYS}.compaction_interval_seconds": (
        f"{UPKEEP}::test_compaction_waits_for_its_interval"
    ),
    f"{UPKEEP_KEYS}.compaction_file_threshold": (
        f"{UPKEEP}::test_small_files_make_compaction_due_from_the_threshold_on"
    ),
    f"{UPKEEP_KEYS}.compaction_max_rows_per_batch": (
        f"{MAINTAIN}::test_a_compaction_of_many_commits_does_not_trip_over_itself"
    ),
}
ALL = [*PLATFORM.items(), *PIPELINE.items()]

SOURCE = "source: {database: d, password: p, tables: [public.orders]}"
EVERY_KEY = """\
transport_mode: embedded
kafka:
  bootstrap_servers: kafka-prod:9092
  schema_registry_url: http://registry-prod:8081
  group_id: cdc-platform
  auto_offset_reset: earliest
  enable_idempotence: true
  acks: 1
  topic_num_partitions: 1
  topic_replication_factor: 1
connector:
  connect_url: http://connect-prod:8083
  timeout_seconds: 30.0
  retry_max_attempts: 5
  retry_wait_seconds: 2.0
max_buffered_messages: 1000
schema_monitor_interval_seconds: 30.0
lag_monitor_interval_seconds: 15.0
stop_on_incompatible_schema: false
health_port: 8080
health_enabled: true
dlq: {enabled: true, topic_suffix: dlq, max_retries: 3, include_headers: true}
retry:
  max_attempts: 5
  initial_wait_seconds: 1.0
  max_wait_seconds: 60.0
  multiplier: 2.0
  jitter: true
"""
PRINTED = """\
transport_mode: kafka    # Event transport (currently: kafka)

kafka:
  bootstrap_servers: kafka-prod:9092
  schema_registry_url: http://registry-prod:8081

connector:
  connect_url: http://connect-prod:8083
"""


@pytest.mark.parametrize(("key", "test"), ALL, ids=[key for key, _ in ALL])
def test_every_key_is_accepted_and_has_the_test_of_its_effect(key: str, test: str) -> None:
    models = (PlatformConfig, PipelineConfig)
    assert key in {known.path for model in models for known in keys(model)}
    file, _, name = test.partition("::")
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{test} is no test"
    unused = UNUSED[TransportMode.EMBEDDED] | {"sinks[].iceberg.batch_size"}
    assert (test == SAID) is (key in unused)


def test_validate_says_which_keys_have_no_effect(tmp_path: Path) -> None:
    sink = "{sink_id: ice, sink_type: iceberg, iceberg: {batch_size: 500}}"
    (tmp_path / "p.yaml").write_text(f"pipeline_id: demo\n{SOURCE}\nsinks: [{sink}]\n")
    (tmp_path / "platform.yaml").write_text(EVERY_KEY)
    pipeline = load_pipeline(tmp_path / "p.yaml")
    platform = load_platform(tmp_path / "platform.yaml")
    report = validate_pipeline(pipeline, platform, offline=True)
    (said,) = report.findings
    assert report.ok and (said.code, said.severity) == ("config.without_effect", "info")
    told = said.message.removeprefix("accepted, without effect with transport_mode embedded: ")
    wanted = UNUSED[TransportMode.EMBEDDED] | {"kafka.schema_registry_url"}
    assert set(told.split(", ")) == wanted | {"sinks.ice.iceberg.batch_size"}
    assert validate_pipeline(pipeline, PlatformConfig(), offline=True).findings, "its own key"
    (tmp_path / "p.yaml").write_text(f"pipeline_id: demo\n{SOURCE}\n")
    bare = load_pipeline(tmp_path / "p.yaml")
    assert validate_pipeline(bare, PlatformConfig(), offline=True).findings == ()


@pytest.mark.parametrize(
    ("written", "means"), [("1", "1"), ("0", "0"), ("-1", "all"), ("all", "all"), ("'1'", "1")]
)
def test_acks_may_be_a_number(tmp_path: Path, written: str, means: str) -> None:
    (tmp_path / "platform.yaml").write_text(f"kafka: {{acks: {written}}}\n")
    assert load_platform(tmp_path / "platform.yaml").kafka.acks == means


def test_the_printed_platform_example_loads_unchanged(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text(PRINTED)
    assert load_platform(tmp_path / "platform.yaml").transport_mode is TransportMode.KAFKA


def test_the_examples_load_by_the_names_the_specification_gives_them() -> None:
    pipeline = load_pipeline(ROOT / "examples/demo-config.yaml")
    platform = load_platform(ROOT / "examples/platform.yaml")
    report = validate_pipeline(pipeline, platform, offline=True)
    assert report.ok and report.findings == ()
    assert (pipeline.source.password.get_secret_value(), platform.health_port) == (
        "cdc_password",
        8080,
    )


def test_waits_follow_every_key_of_retry() -> None:
    slow = RetryConfig(initial_wait_seconds=2, multiplier=3, max_wait_seconds=20, jitter=False)
    assert [backoff(slow, attempt) for attempt in range(1, 5)] == [2, 6, 18, 20]
    varied = slow.model_copy(update={"jitter": True})
    assert len({backoff(varied, 4) for _ in range(50)}) > 1
    assert all(10 <= backoff(varied, 4) <= 20 for _ in range(50))


def test_every_key_of_the_files_is_read_somewhere_or_said_to_do_nothing() -> None:
    """A switch that is silently off is worse than one that is refused."""
    code = "\n".join(
        file.read_text(encoding="utf-8")
        for file in INCLUDE.rglob("*.py")
        if file.relative_to(INCLUDE).as_posix() not in DEFINED
    )
    unread = {
        key.path
        for model in (PlatformConfig, PipelineConfig)
        for key in keys(model)
        if key.nested is None and not re.search(rf"\.{key.name}\b", code)
    }
    not_built = ("sinks[].webhook.", "sinks[].postgres.")
    by_name = tuple(f".schema_changes.{name}" for name in POLICY_OF.values())
    unread -= {path for path in unread if path.startswith(not_built) or path.endswith(by_name)}
    assert unread <= {"sinks[].iceberg.batch_size", *UNUSED[TransportMode.EMBEDDED]}
