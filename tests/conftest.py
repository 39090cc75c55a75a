"""Fixtures of the whole suite live in tests/support, one module per real thing."""

pytest_plugins = ["tests.support.lake", "tests.support.postgres", "tests.support.spark", "tests.support.stack"]
