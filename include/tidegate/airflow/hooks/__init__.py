"""Hooks: spark-submit, and the source's secrets."""
