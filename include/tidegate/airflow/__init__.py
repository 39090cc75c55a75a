"""Airflow: the Dag factory, operators, the gate sensor. The only package that imports airflow."""
