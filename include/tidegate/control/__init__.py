"""Status and actions, shared by CLI, API and UI (I10). No Spark, no Airflow."""
