"""A registry on a bad day: noted with what to do, in nobody's way, asked again by the next run."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pyiceberg.catalog import Catalog

from tests.support.changes import number, schema, text
from tests.support.odd_registry import OddRegistry, odd_registry
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.registry import SchemaRegistryConfig
from tidegate.control.registry import registrations
from tidegate.control.status import status
from tidegate.envelope.position import boundary
from tidegate.errors import ConfigError, RetriableError
from tidegate.jobs.register_schemas import run_register
from tidegate.jobs.registering import Registering
from tidegate.jobs.second_opinion import SecondOpinion
from tidegate.lake.registrations import Registration, Registrations, Verdict
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.subjects import Subjects, pending

ORDERS = schema("public.orders", number("id", key=0), text("note"))
WIDER = schema("public.orders", number("id", key=0), text("note"), text("more"))
URL = "http://registry"


@pytest.fixture
def odd() -> Iterator[OddRegistry]:
    with odd_registry() as server:
        yield server


@pytest.fixture
def history(catalog: Catalog, pipeline: PipelineConfig) -> SchemaHistory:
    made = SchemaHistory(catalog, pipeline)
    made.record(ORDERS, boundary("e1", 10))
    made.record(WIDER, boundary("e1", 20))
    return made


def pointed(platform: PlatformConfig, url: str, **settings: float) -> PlatformConfig:
    registry = SchemaRegistryConfig.model_validate({"enabled": True, "url": url, **settings})
    return platform.model_copy(update={"schema_registry": registry})


def test_a_registry_that_fails_is_asked_once_a_run_and_noted_once(
    history: SchemaHistory,
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    odd: OddRegistry,
) -> None:
    platform = pointed(platform, odd.url)
    odd.says(500, {})
    for _ in range(2):
        result = run_register(pipeline, platform)
        assert result.error is not None and result.error.code == "registry.failing"
        assert {one.status for one in result.tables} == {"left"} and len(result.tables) == 4
    assert len(odd.asked) == 2, "one question a run is enough to know"

    found = status(pipeline, platform, ask_source=False).registry
    assert found is not None and found.problem is not None
    assert (found.registered, found.pending) == (0, 4)
    assert found.problem["code"] == "registry.failing" and "next run" in found.problem["hint"]
    kept = catalog.load_table(Registrations(catalog, pipeline).identifier)
    assert len(kept.snapshots()) == 1, "the same trouble again is no news"
    assert {row.status for row in registrations(pipeline, platform)} == {"pending"}


def test_a_slow_registry_costs_a_run_its_limit_and_no_more(
    history: SchemaHistory, pipeline: PipelineConfig, platform: PlatformConfig, odd: OddRegistry
) -> None:
    odd.silent = True
    began = time.monotonic()
    result = run_register(pipeline, pointed(platform, odd.url, timeout_seconds=0.5))
    assert time.monotonic() - began < 10
    assert result.error is not None and result.error.code == "registry.timeout"

    odd.silent = False
    odd.says(200, {"id": 1, "version": 1})
    result = run_register(pipeline, pointed(platform, odd.url, max_seconds=1e-9))
    assert result.error is not None and result.error.code == "registry.slow"


def test_a_round_of_a_running_pipeline_does_not_wait_for_it(
    history: SchemaHistory, pipeline: PipelineConfig, platform: PlatformConfig, odd: OddRegistry
) -> None:
    odd.silent = True
    platform = pointed(platform, odd.url, timeout_seconds=60)
    registering = Registering(pipeline, platform)
    for _ in range(3):
        registering.begin()  # returns, while the registry says nothing
    odd.over.set()  # now it hangs up
    registering.finish()
    assert len(odd.asked) == 1
    found = status(pipeline, platform, ask_source=False).registry
    assert found is not None and found.problem is not None
    assert found.problem["code"] == "registry.unreachable"


def test_a_dry_run_keeps_nothing(
    history: SchemaHistory,
    catalog: Catalog,
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    odd: OddRegistry,
) -> None:
    odd.says(404, {"error_code": 40401, "message": "Subject not found."})
    result = run_register(pipeline, pointed(platform, odd.url), dry_run=True)
    assert {one.status for one in result.tables} == {"would_register"}
    assert not any(path.endswith("/versions") for path in odd.asked)
    assert not catalog.table_exists(Registrations(catalog, pipeline).identifier)


def test_without_a_registry_nobody_is_asked(
    history: SchemaHistory, pipeline: PipelineConfig, platform: PlatformConfig
) -> None:
    assert SecondOpinion(pipeline, platform).on(ORDERS) == ""
    assert status(pipeline, platform, ask_source=False).registry is None
    for ask in (run_register, registrations):
        with pytest.raises(ConfigError) as caught:
            ask(pipeline, platform)
        assert caught.value.code == "registry.none"


def test_a_second_opinion_that_does_not_come_says_why(
    pipeline: PipelineConfig, platform: PlatformConfig, odd: OddRegistry
) -> None:
    odd.body = b"<html>"
    opinion = SecondOpinion(pipeline, pointed(platform, odd.url))
    for _ in range(3):
        assert "[registry.nonsense]" in opinion.on(ORDERS)
    assert len(odd.asked) == 1
    broken = pointed(platform, odd.url).model_copy(
        update={"schema_registry": SchemaRegistryConfig(enabled=True, ca_file="/nowhere.pem")}
    )
    assert "[registry.ca_file]" in SecondOpinion(pipeline, broken).on(ORDERS)


def test_registrations_are_kept_once_and_per_registry(
    history: SchemaHistory, catalog: Catalog, pipeline: PipelineConfig
) -> None:
    kept = Registrations(catalog, pipeline)
    taken = Registration("public.orders", "s1", "a-value", Verdict.REGISTERED, 1, 1, True)
    refused = Registration(
        "public.orders", "s2", "a-value", Verdict.REFUSED, compatible=False, reasons=("no",)
    )
    trouble = RetriableError("registry.failing", "it fails", hint="wait")
    for _ in range(2):
        kept.note(URL, [taken, refused], trouble)
    known = kept.known(URL)
    assert known.registered("a-value", "s1") and not known.registered("a-value", "s2")
    assert known.said["a-value", "s2"].reasons == ("no",)
    assert known.problem is not None and known.problem.hint == "wait"
    assert len(catalog.load_table(kept.identifier).snapshots()) == 1
    assert kept.known("http://another").said == {}
    kept.note(URL, [], None)
    assert kept.known(URL).problem is None


def test_what_was_refused_is_tried_until_a_later_schema_is_taken(
    history: SchemaHistory, catalog: Catalog, pipeline: PipelineConfig
) -> None:
    kept = Registrations(catalog, pipeline)
    (entries,) = [
        one
        for one in Subjects(pipeline, SchemaRegistryConfig()).history(history)
        if one and one[0].table == "public.orders"
    ]
    assert [entry.subject for entry in entries] == [
        *("cdc.public.orders-key", "cdc.public.orders-value") * 2
    ]
    first, second = entries[1], entries[3]

    def note(entry: object, verdict: Verdict) -> None:
        one = Registration("public.orders", entry.schema_id, entry.subject, verdict)  # type: ignore[attr-defined]
        kept.note(URL, [one], None)

    note(first, Verdict.REFUSED)
    assert set(pending(entries, kept.known(URL))) == set(entries)
    note(second, Verdict.REGISTERED)
    assert set(pending(entries, kept.known(URL))) == {entries[0], entries[2]}


def test_subjects_follow_the_template_and_stay_apart(pipeline: PipelineConfig) -> None:
    odd = pipeline.model_copy(
        update={
            "source": pipeline.source.model_copy(
                update={"tables": ('public."a.b"', "public.a_b", 'public."a b"')}
            )
        }
    )
    config = SchemaRegistryConfig(subject="{pipeline}.{schema}.{table}")
    topics = [Subjects(odd, config).topic(table) for table in odd.source.table_ids]
    assert topics[1] == "shop.public.a_b"
    assert len(set(topics)) == 3 and all(t.startswith("shop.public.a_b") for t in topics)
