"""What a JVM of ours is started with, with and without what set-up fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config.platform import LakeConfig, PlatformConfig, SparkConfig
from tidegate.lake import jars
from tidegate.lake.jars import AWS_BUNDLE, JARS, SETUP_JARS, jar_name, jar_settings, local_files


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files as set-up leaves them, and the list of them."""
    files = [tmp_path / jar_name(coordinates) for coordinates in SETUP_JARS]
    for file in files:
        file.touch()
    listed = tmp_path / "jars.files"
    listed.write_text("".join(f"{file}\n" for file in files))
    monkeypatch.setattr(jars, "FETCHED", listed)
    return [str(file) for file in files]


def platform(warehouse: str | None = None, **conf: str) -> PlatformConfig:
    return PlatformConfig(lake=LakeConfig(warehouse=warehouse), spark=SparkConfig(conf=conf))


def test_what_set_up_fetched_is_not_resolved_again(fetched: list[str]) -> None:
    assert jar_settings(platform()) == {"spark.jars": ",".join(fetched)}


def test_jars_of_ones_own_come_beside_ours(fetched: list[str]) -> None:
    own = platform(**{"spark.jars": "/opt/own.jar"})
    assert jar_settings(own) == {"spark.jars": ",".join([*fetched, "/opt/own.jar"])}


def test_where_more_is_wanted_than_set_up_fetched_all_are_named(fetched: list[str]) -> None:
    named = ",".join([*JARS, AWS_BUNDLE])
    assert jar_settings(platform("s3://bucket/lake")) == {"spark.jars.packages": named}
    more = PlatformConfig(spark=SparkConfig(extra_packages=("a:b:1",)))
    assert jar_settings(more) == {"spark.jars.packages": ",".join([*JARS, "a:b:1"])}
    assert local_files(more) == {}


@pytest.mark.parametrize("gone", [jar_name(SETUP_JARS[0]), "jars.files"])
def test_without_what_set_up_fetches_all_are_named(
    fetched: list[str], tmp_path: Path, gone: str
) -> None:
    (tmp_path / gone).unlink()
    assert jar_settings(platform()) == {"spark.jars.packages": ",".join(JARS)}
    assert local_files(platform()) == {}


def test_files_of_other_versions_are_not_taken(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "SETUP_JARS", (*SETUP_JARS[:-1], "com.example:other:2.0"))
    assert jar_settings(platform()) == {"spark.jars.packages": ",".join(JARS)}


def test_packages_that_someone_names_have_the_last_word(fetched: list[str]) -> None:
    own = platform(**{"spark.jars.packages": "a:b:1"})
    assert jar_settings(own) == {"spark.jars.packages": "a:b:1"}
    assert local_files(own) == {}


def test_local_files_are_for_local_warehouses(fetched: list[str]) -> None:
    assert jars.LOCAL_FILES in local_files(platform()).values()
    assert jars.LOCAL_FILES in local_files(platform("/srv/lake")).values()
    assert local_files(platform("s3://bucket/lake")) == {}
