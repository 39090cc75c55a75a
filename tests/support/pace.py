"""How fast writers beside a test write."""

from __future__ import annotations

from typing import Final

PACE: Final = 0.002
"""Seconds between a writer's transactions: it is there all the time, and its log stays short."""
