"""Configuration: ``pipeline.yaml`` (what and where) and ``platform.yaml`` (infrastructure)."""
