# Airflow with Tidegate, Spark and Java: for the scheduler, triggerer, Dag processor, API server and
# workers alike. It follows the Astro layout on the public Airflow image; with the Astro CLI, replace
# FROM by an astro-runtime image of the same Airflow version and keep the rest.
#
# Not built by the test suite (that runs without a container engine); `make test` covers what goes
# into it. Build:  docker build -t tidegate .
FROM apache/airflow:3.3.2-python3.11

USER root
COPY packages.txt /tmp/packages.txt
RUN apt-get update \
    && xargs -r -a /tmp/packages.txt apt-get install -y --no-install-recommends \
    && rm -rf /var/lib/apt/lists/* /tmp/packages.txt \
    && ln -s "$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")" /opt/java
ENV JAVA_HOME=/opt/java

USER airflow
WORKDIR /opt/airflow
COPY --chown=airflow:root requirements.txt requirements.lock pyproject.toml README.md ./
RUN pip install --no-cache-dir -r requirements.lock

COPY --chown=airflow:root include ./include
RUN pip install --no-cache-dir --no-deps -e . \
    && python -m compileall -q include/tidegate

# Jars are resolved at build time, so that no task waits for them.
COPY --chown=airflow:root scripts/fetch_jars.py ./scripts/fetch_jars.py
RUN python scripts/fetch_jars.py

COPY --chown=airflow:root spark_jobs ./spark_jobs
COPY --chown=airflow:root plugins ./plugins
COPY --chown=airflow:root dags ./dags

ENV PYSPARK_PYTHON=python \
    AIRFLOW__CORE__LOAD_EXAMPLES=False
