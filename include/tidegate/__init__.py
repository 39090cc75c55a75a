"""Tidegate: change data capture into Apache Iceberg, conducted by Airflow, done by Spark."""

__version__ = "0.1.0"
