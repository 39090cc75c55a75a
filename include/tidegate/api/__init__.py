"""Status and actions of :mod:`tidegate.control` over HTTP (I10). No Airflow, no Spark."""
