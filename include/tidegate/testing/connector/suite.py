"""All checks together."""

from __future__ import annotations

from tidegate.testing.connector.changes import ChangesChecks
from tidegate.testing.connector.lifecycle import LifecycleChecks, ValidationChecks
from tidegate.testing.connector.provisioning import ProvisioningChecks
from tidegate.testing.connector.reading import ReadingChecks
from tidegate.testing.connector.sweeps import FaultChecks, SweepChecks


class ConnectorSuite(
    LifecycleChecks,
    ValidationChecks,
    ProvisioningChecks,
    ReadingChecks,
    ChangesChecks,
    SweepChecks,
    FaultChecks,
):
    """Whatever passes is a source connector. A subclass has a fixture ``subject`` that gives a
    :class:`~tidegate.testing.connector.subject.Subject`, a fresh one for every test."""
