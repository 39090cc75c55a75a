"""PostgreSQL 14 to 18: ``pgoutput`` for changes, an exported snapshot for sweeps."""
