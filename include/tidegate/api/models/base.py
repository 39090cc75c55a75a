"""What every model of the API shares."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_EXACT: Final = 2**53
"""Beyond, JavaScript's numbers are not exact: such integers travel as text."""


def exact(value: Any) -> Any:
    """The value with every large integer as text."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _EXACT:
        return str(value)
    if isinstance(value, dict):
        return {str(key): exact(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(item) for item in value]
    return value


SnapshotId = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if isinstance(value, int) else value),
    Field(pattern=r"^-?[0-9]{1,20}$", description="An Iceberg snapshot's id, as text."),
]
Facts = Annotated[
    dict[str, Any],
    BeforeValidator(exact),
    Field(description="Counts, positions and times; never a row's value."),
]


class View(BaseModel):
    """A response, made from a record of ``control``."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Body(BaseModel):
    """A request. Unknown keys and near misses (0 for false) are refused, and what was sent is not
    repeated in errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _no_zero_bytes(cls, data: Any) -> Any:
        """No name and no reason has one, and neither processes nor databases take it."""
        if _has_zero_byte(data):
            raise ValueError("no text may hold a zero byte")
        return data


def _has_zero_byte(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_zero_byte(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return any(map(_has_zero_byte, value))
    return isinstance(value, str) and "\0" in value


def example(**values: Any) -> ConfigDict:
    """A request as someone might send it, for the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [values]})


class Problem(View):
    """An error (RFC 9457), as `application/problem+json`."""

    type: str = Field(examples=["urn:tidegate:control.unknown_table"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(
        examples=["control.unknown_table"], description="Stable; see the errors page."
    )
    detail: str = Field(examples=["pipeline shop does not take public.nothing"])
    hint: str = Field(
        examples=["its tables are public.customers, public.orders"], description="What to do next."
    )
    instance: str | None = None
    problems: list[dict[str, Any]] | None = Field(
        None, description="Each problem of a configuration file."
    )
