"""Pipelines in their folder: created, found by name, listed, described, deleted."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from rich.console import Console

from tests.support.shop import Shop
from tidegate.cli import render_pipelines
from tidegate.config.folder import PIPELINES_VARIABLE, find_pipeline, pipelines_dir
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.control.audit import audit
from tidegate.control.pipelines import create, delete, describe, list_pipelines
from tidegate.control.running import stop
from tidegate.errors import ConfigError, HeldError
from tidegate.lake.gate import Gate
from tidegate.lake.retire import retire

TEXT = """\
# kept as it is written
pipeline_id: shop
source:
  database: shop
  password: ${NOT_SET_HERE}
  tables: [public.customers, public.orders]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pipelines"


def test_a_created_file_is_found_by_name_and_kept_to_the_letter(
    file: Path, folder: Path, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    planned = create(file, platform, folder, offline=True, dry_run=True)
    assert planned.status == "planned" and not folder.exists()
    made = create(file, platform, folder, offline=True)
    assert Path(made.file).read_text() == TEXT
    assert find_pipeline("shop", folder) == folder / "shop.yaml"
    assert [entry.action for entry in audit(pipeline, platform).entries] == ["create"]
    assert not [left for left in folder.iterdir() if left.name != "shop.yaml"]


def test_an_id_is_taken_once_under_whatever_file_name(
    file: Path, folder: Path, platform: PlatformConfig
) -> None:
    folder.mkdir()
    (folder / "other.yml").write_text(TEXT)
    with pytest.raises(ConfigError) as taken:
        create(file, platform, folder, offline=True)
    assert taken.value.code == "pipelines.exists" and "other.yml" in taken.value.message


def test_of_two_creators_one_wins(file: Path, folder: Path, platform: PlatformConfig) -> None:
    outcomes: list[str] = []
    together = threading.Barrier(2)

    def one() -> None:
        together.wait()
        try:
            outcomes.append(create(file, platform, folder, offline=True).status)
        except ConfigError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["created", "pipelines.exists"]


def test_what_is_wrong_does_not_get_in(file: Path, folder: Path, platform: PlatformConfig) -> None:
    file.write_text(TEXT.replace("database: shop", "databse: shop"))
    with pytest.raises(ConfigError):
        create(file, platform, folder, offline=True)
    file.write_text(TEXT.replace("database: shop", "database: shop\n  sslrootcert: ca.pem"))
    with pytest.raises(ConfigError) as refused:
        create(file, platform, folder, offline=True)
    assert refused.value.code == "pipelines.relative_path"
    assert not folder.exists()


def test_a_list_shows_broken_files_too(
    file: Path, folder: Path, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    create(file, platform, folder, offline=True)
    (folder / "broken.yaml").write_text("pipeline_id: broken\nsource: {}\n")
    stop(pipeline, platform, reason="a look")
    broken, shop = list_pipelines(platform, folder)
    assert (broken.pipeline_id, broken.state) == ("broken", "broken")
    assert broken.problem and "source.database" in broken.problem
    assert (shop.pipeline_id, shop.state, shop.deployed, shop.tables) == (
        "shop",
        "stopped",
        False,
        2,
    )


def test_a_list_says_what_is_at_work_and_no_more(
    file: Path, folder: Path, shop: Shop, platform: PlatformConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(file, platform, folder, offline=True)

    def said() -> str:
        shown = Console(file=io.StringIO(), width=200)
        render_pipelines.listed(shown, {"pipelines": list_pipelines(platform, folder)})
        assert isinstance(shown.file, io.StringIO)
        return shown.file.getvalue().splitlines()[1]

    assert "ready" in said() and "running" not in said()
    gate = Gate(shop.catalog, shop.pipeline, platform.gate)
    with gate.lease("r1", ["public.orders"], "apply"):
        assert "at work: apply" in said()
        assert gate.at_work() == ("apply",)
    with monkeypatch.context() as died, gate.lease("r2", ["public.orders"], "repair"):
        died.setattr("tidegate.lake.gate.is_gone", lambda owner: True)
        assert "ready" in said(), "its process is gone"
    assert "ready" in said()


def test_names_paths_and_what_is_neither(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PIPELINES_VARIABLE, raising=False)
    assert pipelines_dir() == Path("include/config/pipelines")
    with pytest.raises(ConfigError) as missing:
        find_pipeline("shop")
    assert missing.value.code == "config.no_folder"
    folder.mkdir()
    (folder / "any.yaml").write_text(TEXT)
    monkeypatch.setenv(PIPELINES_VARIABLE, str(folder))
    assert find_pipeline("shop") == folder / "any.yaml"
    assert find_pipeline(Path("here/shop")) == Path("here/shop")
    assert find_pipeline("nowhere.yaml") == Path("nowhere.yaml")
    with pytest.raises(ConfigError, match="shpo") as unknown:
        find_pipeline("shpo")
    assert "did you mean shop?" in unknown.value.hint


def test_describe_holds_no_secret(
    shop: Shop, platform: PlatformConfig, pipeline: PipelineConfig
) -> None:
    told = describe(pipeline, platform)
    assert told.deployed and told.slot == "tidegate_shop"
    assert [table.lake_table for table in told.tables] == ["shop.customers", "shop.orders"]
    assert pipeline.source.password.get_secret_value() not in str(told)


def test_delete_is_refused_while_deployed(
    shop: Shop,
    file: Path,
    folder: Path,
    catalog: Catalog,
    platform: PlatformConfig,
    pipeline: PipelineConfig,
) -> None:
    made = Path(create(file, platform, folder, offline=True).file)
    with pytest.raises(HeldError) as refused:
        delete(pipeline, platform, made)
    assert refused.value.code == "pipelines.deployed" and made.exists()
    retire(catalog, pipeline, platform.gate)
    assert delete(pipeline, platform, made, dry_run=True).status == "planned" and made.exists()
    assert delete(pipeline, platform, made).status == "deleted" and not made.exists()
    assert audit(pipeline, platform).entries[0].action == "delete"
