"""No surface shows a secret of a configuration: every key of the models is planted with one."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
import yaml
from pydantic import SecretStr

from tidegate.config.base import Section
from tidegate.config.keys import Key, keys
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.problems import ConfigProblems
from tidegate.config.shown import _HARMLESS, NOT_SHOWN, shown
from tidegate.observability import log

CANARY = "c4nary-never-shown"
ADDRESS = f"https://ann:{CANARY}@host:8081/path?token={CANARY}#{CANARY}"
MODELS = (PipelineConfig, PlatformConfig)
KEYS = [(model, key) for model in MODELS for key in keys(model)]


def planted(annotation: Any) -> Any:
    """A value with canaries wherever it may hold one."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return planted(arguments[0])
    if origin in (Union, types.UnionType):
        return planted(next(one for one in arguments if one is not type(None)))
    if origin is tuple:
        return (planted(arguments[0]),)
    if origin is dict:
        inner = planted(arguments[1])
        return {"public.a": inner} if isinstance(inner, Section) else free()
    if annotation is SecretStr:
        return SecretStr(CANARY)
    if annotation is str:
        return ADDRESS
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return section(annotation)
    return None


def free() -> dict[str, Any]:
    """A free mapping as someone may write it: known keys hold addresses, unknown ones anything."""
    return {
        "Authorization": f"Bearer {CANARY}",
        "a.b.c": CANARY,
        "deeper": {"list": [CANARY, {"url": ADDRESS}], "column": CANARY},
        "content-type": ADDRESS,
        "s3.endpoint": ADDRESS,
        "write.data.path": ADDRESS,
    }


def section(model: type[Section]) -> Section:
    return model.model_construct(
        **{name: planted(field.annotation) for name, field in model.model_fields.items()}
    )


def names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from names(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from names(one)


@pytest.mark.parametrize("model", MODELS)
def test_every_key_is_shown_and_no_secret_is(model: type[Section]) -> None:
    full = section(model)
    told = shown(full)
    for said in (json.dumps(told), repr(full), str(full), f"{full}", repr([full]), repr({1: full})):
        assert CANARY not in said
    assert {key.name for key in keys(model)} <= set(names(told))
    assert {"Authorization", "deeper", "a.b.c"} <= set(names(told))


@pytest.mark.parametrize("model", MODELS)
def test_no_line_of_logging_shows_one(
    model: type[Section], capsys: pytest.CaptureFixture[str]
) -> None:
    full = section(model)
    logger = log.get("tidegate.test.shown")
    for wanted in (False, True):
        record = logger.makeRecord(
            logger.name, 20, "", 0, "%s", (full,), None, extra={"tidegate_fields": {"facts": full}}
        )
        formatter = log.JsonFormatter() if wanted else log.LineFormatter()
        assert CANARY not in formatter.format(record)


def test_every_free_mapping_is_known_by_its_name() -> None:
    """Errors know where a value stands, not what type it was to have."""
    free_maps = {
        key.name
        for _, key in KEYS
        if get_origin(key.field.annotation) is dict and key.nested is None
    }
    assert free_maps == set(_HARMLESS)


def test_what_helps_and_is_harmless_is_shown() -> None:
    text = PipelineConfig.model_validate(
        {
            "pipeline_id": "shop",
            "source": {"database": "shop", "password": "x", "tables": ["public.tokens"]},
            "sinks": [
                {
                    "sink_id": "lake",
                    "sink_type": "iceberg",
                    "iceberg": {
                        "properties": {"write.format.default": "orc", "my.own": "x"},
                        "tables": {"public.tokens": {"write_mode": "append"}},
                    },
                }
            ],
        }
    )
    lake = shown(text)["sinks"][0]["iceberg"]
    assert lake["properties"] == {"write.format.default": "orc", "my.own": NOT_SHOWN}
    assert lake["tables"]["public.tokens"]["write_mode"] == "append"
    assert shown(text)["source"]["host"] == "localhost"
    assert shown(text)["source"]["password"] == NOT_SHOWN


WRONG = ([[CANARY]], ADDRESS, {"x": [CANARY]}, {"x": {"y": ADDRESS}}, {ADDRESS: 1})


def document(key: Key, value: Any) -> dict[str, Any]:
    """A file that has ``value`` at the key, and nothing else."""
    parts = key.path.replace("[]", ".0").replace("<table>", "public=a").split(".")
    found: Any = value
    for part in reversed(parts):
        name = part.replace("=", ".").replace("<column>", "a")
        found = [found] if part == "0" else {name: found}
    return dict(found)


@pytest.mark.parametrize(("model", "key"), KEYS, ids=lambda one: getattr(one, "path", ""))
def test_no_refusal_quotes_one(model: type[Section], key: Key, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    load = load_pipeline if model is PipelineConfig else load_platform
    for value in WRONG:
        file.write_text(yaml.safe_dump(document(key, value)))
        try:
            loaded = load(file)
        except ConfigProblems as refused:
            said = [str(refused), json.dumps(refused.to_dict()), repr(refused)]
        else:
            said = [repr(loaded), json.dumps(shown(loaded))]
        assert not [text for text in said if CANARY in text]
