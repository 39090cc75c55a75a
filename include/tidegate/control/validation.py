"""Is a pipeline right: its files, and the source they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.config.effects import without_effect
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig, TransportMode
from tidegate.config.sinks import SinkType
from tidegate.connectors.protocol import Source
from tidegate.control.findings import Finding
from tidegate.control.surprises import surprises
from tidegate.schema.contract import objections

ERROR = "error"
WARNING = "warning"
INFO = "info"


@dataclass(frozen=True, slots=True)
class PipelineReport:
    """What validation found."""

    pipeline_id: str
    transport_mode: str
    tables: tuple[str, ...]
    source_checked: bool
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not any(finding.severity == ERROR for finding in self.findings)


def validate_pipeline(
    pipeline: PipelineConfig, platform: PlatformConfig, *, offline: bool = False
) -> PipelineReport:
    """Check what the models cannot: parts that are not built, and the live source."""
    findings = [*_file_findings(pipeline, platform)]
    if not offline:
        findings += _source_findings(pipeline, platform)
    return PipelineReport(
        pipeline_id=pipeline.pipeline_id,
        transport_mode=platform.transport_mode.value,
        tables=pipeline.source.tables,
        source_checked=not offline,
        findings=tuple(findings),
    )


def _file_findings(pipeline: PipelineConfig, platform: PlatformConfig) -> Iterator[Finding]:
    if not pipeline.source.tables:
        message = "source.tables lists no table: nothing will be captured"
        yield Finding("config.no_tables", WARNING, None, message, "list schema.table names")
    if platform.transport_mode is not TransportMode.EMBEDDED:
        yield Finding(
            "config.transport_not_built",
            WARNING,
            None,
            f"transport_mode {platform.transport_mode} is not built yet; deploy refuses it",
            "set transport_mode: embedded in platform.yaml",
        )
    idle = without_effect(pipeline, platform)
    if idle:
        mode = platform.transport_mode.value
        message = f"accepted, without effect with transport_mode {mode}: {', '.join(idle)}"
        yield Finding("config.without_effect", INFO, None, message, None)
    for sink in pipeline.sinks:
        if sink.enabled and sink.sink_type is not SinkType.ICEBERG:
            yield Finding(
                "config.sink_not_built",
                WARNING,
                None,
                f"sink {sink.sink_id} ({sink.sink_type}) is not built yet; deploy refuses it",
                "set enabled: false",
            )


def _column_findings(
    pipeline: PipelineConfig, source: Source, in_trouble: set[str | None]
) -> Iterator[Finding]:
    """Columns that the file gives types or policies they cannot have; what becomes of others."""
    # A table that is missing or unreadable has been reported.
    targets = [target for target in pipeline.targets if target.source not in in_trouble]
    found = source.discover_all(tuple(target.table for target in targets))
    fine = []
    for target in targets:
        schema = found[target.table]
        against = [*objections(schema, target)] if target.options.columns else []
        if not against:
            fine.append((target, schema))
        for message in against:
            yield Finding(
                "config.column_override",
                ERROR,
                target.source,
                message,
                "see docs/reference/types.md for what a column can become",
            )
    yield from surprises(fine)


def _source_findings(pipeline: PipelineConfig, platform: PlatformConfig) -> list[Finding]:
    from tidegate.connectors.registry import open_source

    source = open_source(pipeline, platform)
    try:
        report = source.validate()
        columns = [*_column_findings(pipeline, source, {p.table for p in report.errors})]
    finally:
        source.close()
    return columns + [
        Finding(
            code=problem.code,
            severity=problem.severity.value,
            table=problem.table,
            message=problem.message,
            fix=problem.fix_sql,
        )
        for problem in report.problems
    ]
