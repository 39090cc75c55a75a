"""The demo: a real PostgreSQL shop, a real Airflow and real Spark on one machine, no Docker."""
