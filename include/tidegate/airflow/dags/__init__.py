"""The generated Dags, one module each."""
