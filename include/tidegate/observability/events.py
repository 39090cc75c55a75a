"""Event names of the platform specification, where it names what happens here."""

from __future__ import annotations

from typing import Final

SCHEMA_VERSION_CHANGED: Final = "schema.version_changed"
SCHEMA_INCOMPATIBLE: Final = "schema.incompatible_change_detected"
CONSUMER_LAG: Final = "consumer.lag"
