"""What every source connector must do, as tests: subclass :class:`ConnectorSuite`, give a subject.

``docs/guides/writing-a-connector.md`` shows how; pytest is the only thing it needs.
"""

import pytest

# Before they are imported, so that a failing check says what it saw.
for _module in ("changes", "history", "lifecycle", "provisioning", "sweeps"):
    pytest.register_assert_rewrite(f"{__name__}.{_module}")

from tidegate.testing.connector.subject import (  # noqa: E402
    Fault,
    Mistake,
    Subject,
    TypeSample,
)
from tidegate.testing.connector.suite import ConnectorSuite  # noqa: E402

__all__ = ["ConnectorSuite", "Fault", "Mistake", "Subject", "TypeSample"]
