"""Tell the schema registry every schema of the history it does not have yet. No JVM.

``python -m tidegate.jobs.register_schemas`` is the process Airflow starts, beside apply and never
before it. A registry that is down, slow or talks nonsense ends this run after one time limit and is
noted; the next run goes on. Telling it twice changes nothing (I3).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.errors import DataError, TidegateError
from tidegate.jobs import door
from tidegate.jobs.second_opinion import Patience
from tidegate.lake.catalog import open_catalog
from tidegate.lake.registrations import Registration, Registrations, Verdict, registry_of
from tidegate.lake.schema_history import SchemaHistory
from tidegate.lake.subjects import Entry, Subjects, pending
from tidegate.names import TableId
from tidegate.observability import log
from tidegate.schema.registry import Opinion, Registered, SchemaRegistry

_LOG = log.get("tidegate.jobs.register_schemas")  # run as a module, __name__ would say __main__


@dataclass(frozen=True, slots=True)
class SubjectResult:
    """What became of one schema under one subject."""

    table: str
    status: str  # registered | refused | would_register | would_be_refused | left
    subject: str
    schema_id: str
    id: int | None = None
    version: int | None = None
    compatible: bool | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RegisterResult:
    """``error`` is why the registry was given up; it never stops anything else."""

    registry: str
    dry_run: bool
    tables: list[SubjectResult]
    error: TidegateError | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None or any(one.status == "refused" for one in self.tables)


def run_register(
    pipeline: PipelineConfig,
    platform: PlatformConfig,
    *,
    tables: Sequence[str] | None = None,
    everything: bool = False,
    dry_run: bool = False,
) -> RegisterResult:
    """Register what is pending; with ``dry_run`` only ask what the registry would say.

    ``everything``: also what our records say it has, for a registry that was emptied or restored.
    """
    url = registry_of(platform)
    catalog = open_catalog(platform, pipeline)
    history, kept = SchemaHistory(catalog, pipeline), Registrations(catalog, pipeline)
    subjects, known = Subjects(pipeline, platform.schema_registry), kept.known(url)
    names = None if tables is None else [str(TableId.parse(name)) for name in tables]
    due = [
        entry
        for one in subjects.history(history, names)
        for entry in (one if everything else pending(one, known))
    ]
    teller = _Teller(platform, url, dry_run)
    results = [teller.tell(entry) for entry in due]
    problem = teller.patience.problem if due else None
    if not dry_run:
        faults.point("registry.after_told")
        kept.note(url, teller.told, problem)
    _say(results, problem)
    return RegisterResult(url, dry_run, results, problem)


class _Teller:
    """One run's talk with the registry."""

    def __init__(self, platform: PlatformConfig, url: str, dry_run: bool) -> None:
        config = platform.schema_registry
        self.patience = Patience(config.max_seconds)
        self.told: list[Registration] = []
        self._dry_run = dry_run
        self._found: dict[tuple[str, str], Registered] = {}
        self._registry: SchemaRegistry | None = None
        try:
            self._registry = SchemaRegistry(config, url)
        except TidegateError as error:
            self.patience.problem = error

    def tell(self, entry: Entry) -> SubjectResult:
        """Never raises: what the registry does is its own affair."""
        if self._registry is None or self.patience.over():
            return _result(entry, "left")
        try:
            return self._tell(entry, self._registry)
        except TidegateError as error:
            self.patience.problem = error
            return _result(entry, "left")

    def _tell(self, entry: Entry, registry: SchemaRegistry) -> SubjectResult:
        # A key's text stays the same through most changes of its table.
        found = self._found.get((entry.subject, entry.text))
        found = found or registry.lookup(entry.subject, entry.text)
        opinion = None
        if found is None:
            opinion = registry.opinion(entry.subject, entry.text)
            if self._dry_run:
                refused = opinion is not None and not opinion.compatible
                status = "would_be_refused" if refused else "would_register"
                return _result(entry, status, opinion=opinion)
            try:
                found = registry.register(entry.subject, entry.text)
            except DataError as error:
                reasons = (opinion.reasons if opinion else ()) or (error.message,)
                opinion = Opinion(False, reasons)
                self.told.append(_registration(entry, Verdict.REFUSED, None, opinion))
                return _result(entry, "refused", opinion=opinion)
        self._found[entry.subject, entry.text] = found
        self.told.append(_registration(entry, Verdict.REGISTERED, found, opinion))
        return _result(entry, "registered", found, opinion)


def _registration(
    entry: Entry, verdict: Verdict, found: Registered | None, opinion: Opinion | None
) -> Registration:
    return Registration(
        table=entry.table,
        schema_id=entry.schema_id,
        subject=entry.subject,
        verdict=verdict,
        id=found.id if found else None,
        version=found.version if found else None,
        compatible=opinion.compatible if opinion else None,
        reasons=opinion.reasons if opinion else (),
    )


def _result(
    entry: Entry, status: str, found: Registered | None = None, opinion: Opinion | None = None
) -> SubjectResult:
    return SubjectResult(
        table=entry.table,
        status=status,
        subject=entry.subject,
        schema_id=entry.schema_id,
        id=found.id if found else None,
        version=found.version if found else None,
        compatible=opinion.compatible if opinion else None,
        reason="; ".join(opinion.reasons) if opinion else "",
    )


def _say(results: Sequence[SubjectResult], problem: TidegateError | None) -> None:
    for one in results:
        if one.status == "refused":
            log.event(
                _LOG,
                f"{one.subject}: refused by the schema registry",
                level=logging.WARNING,
                table=one.table,
                reason=one.reason,
            )
    if problem is not None:
        log.event(
            _LOG,
            problem.message,
            level=logging.WARNING,
            code=problem.code,
            hint=problem.hint,
        )


def _job(call: door.Call) -> Any:
    return run_register(call.pipeline, call.platform, tables=call.tables)


if __name__ == "__main__":
    door.main(_job, name="register_schemas", spark=False)
