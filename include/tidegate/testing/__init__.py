"""Conformance suites and the real servers they run against."""
