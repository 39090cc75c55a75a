"""The embedded transport's ``Provisioner``: publication and slot at the source, the change log.

The control namespace carries the deployment's id, and, before a slot is made, the slot's name:
after a crash at any point the next attempt knows what is ours (I3).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError

from tidegate import faults
from tidegate.config.pipeline import PipelineConfig
from tidegate.connectors.protocol import Source
from tidegate.envelope.position import Position
from tidegate.errors import FatalError
from tidegate.lake.catalog import ensure_namespace
from tidegate.lake.change_log import ChangeLog
from tidegate.names import DEPLOYMENT_PROPERTY, PROPERTY_PREFIX

SLOT_PROPERTY: Final = f"{PROPERTY_PREFIX}slot"


class EmbeddedProvisioner:
    """Makes, and takes away, what the capture of one pipeline needs.

    ``new_epoch``: the slot is gone for good; begin a new log.
    """

    def __init__(
        self, source: Source, catalog: Catalog, pipeline: PipelineConfig, *, new_epoch: bool = False
    ) -> None:
        self._source = source
        self._catalog = catalog
        self._pipeline = pipeline
        self._new_epoch = new_epoch
        self._log = ChangeLog(catalog, pipeline)
        self.objects: Mapping[str, str] = {}
        """What capture uses at the source; known once it was provisioned."""

    @property
    def start(self) -> Position | None:
        """Where the change log stands; None while there is none."""
        return self._log.head().captured_through if self._log.exists() else None

    def provision(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """What was (or would be) made, in words; nothing where nothing was missing."""
        return self._plan() if dry_run else self._provision()

    def teardown(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Remove what is ours at the source. The change log is a table of the lake and goes with
        the others (``lake.retire``)."""
        notes = deployment_notes(self._catalog, self._pipeline)
        ours = notes.get(SLOT_PROPERTY) == self._pipeline.slot_name
        actions = self._source.deprovision(notes[DEPLOYMENT_PROPERTY], ours=ours, dry_run=dry_run)
        faults.point("undeploy.after_source")
        if not dry_run:
            self._catalog.update_namespace_properties(
                self._pipeline.control_namespace,
                removals=set(notes) & {DEPLOYMENT_PROPERTY, SLOT_PROPERTY},
            )
        return actions

    def _plan(self) -> tuple[str, ...]:
        notes = deployment_notes(self._catalog, self._pipeline)
        actions = self._source.plan(notes.get(DEPLOYMENT_PROPERTY, ""))
        return actions if self._log.exists() else (*actions, "create the change log")

    def _provision(self) -> tuple[str, ...]:
        pipeline = self._pipeline
        notes = self._noted()
        ours = notes.get(SLOT_PROPERTY) == pipeline.slot_name
        there = self._source.status().slot is not None
        if self._log.exists() and not there and not self._new_epoch:
            raise FatalError(
                "deploy.slot_lost",
                f"the pipeline was deployed, but its slot {pipeline.slot_name} is gone",
                hint="changes since then are lost: `tidegate recover` makes a new slot and sweeps"
                f" {', '.join(pipeline.source.tables)}",
            )
        if not there and not ours:
            # Before the slot exists: what is made from here on is ours, even if we die (I3).
            self._note(SLOT_PROPERTY, pipeline.slot_name)
            ours = True
        made = self._source.provision(notes[DEPLOYMENT_PROPERTY], ours=ours, renew=self._new_epoch)
        self.objects = made.objects
        begun = self._ensure_log(made.start)
        return (*made.actions, "change log ready") if begun else made.actions

    def _ensure_log(self, start: Position) -> bool:
        """Whether a log begins at ``start``. One that exists keeps its epoch: the slot's confirmed
        point has moved on since then."""
        if not self._log.exists():
            self._log.create(start)
            return True
        if self._new_epoch:
            return self._log.begin_epoch(start).captured_through == start
        return False

    def _noted(self) -> dict[str, str]:
        """The notes, with a deployment id among them."""
        ensure_namespace(self._catalog, self._pipeline.control_namespace)
        if DEPLOYMENT_PROPERTY not in deployment_notes(self._catalog, self._pipeline):
            self._note(DEPLOYMENT_PROPERTY, uuid.uuid4().hex)
        return deployment_notes(self._catalog, self._pipeline)

    def _note(self, name: str, value: str) -> None:
        self._catalog.update_namespace_properties(
            self._pipeline.control_namespace, updates={name: value}
        )


def deployment_notes(catalog: Catalog, pipeline: PipelineConfig) -> dict[str, str]:
    """What is noted of a deployment; empty where there is none."""
    try:
        return {**catalog.load_namespace_properties(pipeline.control_namespace)}
    except NoSuchNamespaceError:
        return {}
