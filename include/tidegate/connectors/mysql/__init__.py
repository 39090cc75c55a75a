"""MariaDB 10.5+ and MySQL 8.0+: the row-based binary log for changes, key ranges for sweeps."""
