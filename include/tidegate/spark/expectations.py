"""The user's Great Expectations suite, from YAML to verdicts.

Results are BOOLEAN_ONLY: anything richer carries row values (I9). No context is written to disk,
no analytics are sent, no progress bars are drawn. This module never imports pyspark, so that
``validate`` can check a suite without a JVM.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.config.pipeline import LakeTarget, PipelineConfig
from tidegate.config.sinks import Expectation
from tidegate.errors import ConfigError

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # read when great_expectations is imported


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation's outcome."""

    name: str
    passed: bool
    detail: str = ""


def check(pipeline: PipelineConfig) -> None:
    """Refuse unknown expectation types and wrong arguments, all of them at once."""
    found = [line for target in pipeline.targets for line in problems(target)]
    if found:
        raise ConfigError(
            "config.expectation",
            "; ".join(found),
            hint="expectation types and arguments: https://greatexpectations.io/expectations",
        )


def problems(target: LakeTarget) -> list[str]:
    """Readable problems of one table's expectations (Great Expectations loads only if any)."""
    lines = []
    for index, expectation in enumerate(target.options.expectations):
        problem = _problem(expectation)
        if problem:
            lines.append(f"{target.source}: expectations[{index}]: {problem}")
    return lines


def _problem(expectation: Expectation) -> str | None:
    known = _known()
    if expectation.type not in known:
        near = difflib.get_close_matches(expectation.type, known, n=1, cutoff=0.4)
        nearest = f", the nearest is {near[0]}" if near else ""
        return f"no expectation type is named {expectation.type}{nearest}"
    try:
        _build(expectation)
    except (TypeError, ValueError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{expectation.type}: {' '.join(lines[1:]) or lines[0]}"
    return None


def _gx() -> Any:
    with warnings.catch_warnings():
        # Its own imports are of deprecated modules, which is not the user's to mend.
        warnings.simplefilter("ignore", DeprecationWarning)
        import great_expectations

    return great_expectations


def _known() -> list[str]:
    _gx()  # registers the expectations
    from great_expectations.expectations.registry import (
        list_registered_expectation_implementations,
    )

    return sorted(list_registered_expectation_implementations())


def _build(expectation: Expectation) -> Any:
    _gx()
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    return ExpectationConfiguration(
        type=expectation.type, kwargs=dict(expectation.kwargs)
    ).to_domain_obj()


def run_suite(frame: Any, expectations: Sequence[Expectation]) -> list[Verdict]:
    """Validate a Spark DataFrame; one verdict per expectation."""
    if not expectations:
        return []
    gx = _gx()
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_spark(name="lake", persist=False).add_dataframe_asset(
        name="branch"
    )
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(
        name="audit", expectations=[_build(expectation) for expectation in expectations]
    )
    outcome = batch.validate(suite, result_format="BOOLEAN_ONLY")
    return sorted((_verdict(result) for result in outcome.results), key=lambda v: v.name)


def _verdict(result: Any) -> Verdict:
    # Results come in an order of their own, so each names itself.
    config = result.expectation_config
    column = config.kwargs.get("column")
    name = f"{config.type}({column})" if column else str(config.type)
    return Verdict(name, bool(result.success), _reason(result))


def _reason(result: Any) -> str:
    """Why an expectation could not be computed, without what Spark quotes from rows."""
    if result.success:
        return ""
    raised = any(
        info.get("raised_exception")
        for info in _exceptions(result.exception_info)
        if isinstance(info, dict)
    )
    return "could not be computed: check its column and arguments" if raised else "not met"


def _exceptions(info: Any) -> list[Any]:
    if not isinstance(info, dict):
        return []
    return [info] if "raised_exception" in info else list(info.values())
