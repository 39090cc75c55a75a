# Two commands do it all on a fresh machine:  make demo   make test
# Both set up what they need (scripts/setup.sh); a second run skips what is done.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PY := .venv/bin/python
ENV := . .venv/tidegate/env
LINTED := include tests demo dags plugins spark_jobs benchmarks scripts docs

##@ Start here

.PHONY: demo
demo: setup ## Run the whole story: PostgreSQL, Airflow, Spark, sweep, changes, gate, verify (KEEP=1 leaves it running; SOURCE=mysql: from MariaDB)
	@$(ENV) && $(PY) -m demo run $(if $(KEEP),--keep) $(if $(SOURCE),--source $(SOURCE))

.PHONY: test
test: setup ## Run every suite: unit, contract, Spark, integration, Dags, faults (one kill per step)
	@$(ENV) && $(PY) scripts/run_tests.py

.PHONY: up
up: setup ## Start the demo's stack and leave it running with the Airflow UI (WRITER=1: a source that keeps changing)
	@$(ENV) && $(PY) -m demo up $(if $(WRITER),--writer) $(if $(SOURCE),--source $(SOURCE))

.PHONY: down
down: ## Stop what `make up` (or `make demo KEEP=1`) started
	@if [ -x $(PY) ]; then $(PY) -m demo down; else echo "nothing is running: .venv does not exist"; fi

.PHONY: setup
setup: ## Create .venv, install packages, find or install Java, fetch jars
	@MAKE_TARGET=$(firstword $(MAKECMDGOALS)) SOURCE=$(SOURCE) scripts/setup.sh

##@ Tests

.PHONY: test-unit test-spark test-integration test-conformance test-dags test-page test-system test-faults
test-unit: setup ## Unit and contract tests (no JVM, no server)
test-spark: setup ## Spark tests
test-integration: setup ## Tests against a real PostgreSQL
test-conformance: setup ## Every conformance case on every path, on PostgreSQL 15
test-dags: setup ## Dags, operators, sensors
test-page: setup ## The browser page, in Chromium
test-system: setup ## A pipeline on a Spark cluster, S3 and a PostgreSQL catalog
test-faults: setup ## The whole matrix of killed processes, full disks, locked catalogs (half an hour)
test-unit test-spark test-integration test-conformance test-dags test-page test-system test-faults:
	@$(ENV) && $(PY) scripts/run_tests.py $(@:test-%=%) $(ARGS)

.PHONY: test-mysql
test-mysql: setup ## Everything about MySQL 8 and MariaDB that make test leaves out (no JVM; MySQL comes from Maven)
	@$(ENV) && $(PY) -m pytest tests/integration/mysql -m long $(ARGS)

##@ Checks and reference

.PHONY: lint
lint: setup ## ruff, mypy, import contracts, generated reference up to date
	@$(ENV) && scripts/lint.sh

.PHONY: format fmt
fmt: format
format: setup ## Let ruff rewrite what it can (the same: make fmt)
	@.venv/bin/ruff check --fix $(wildcard $(LINTED))
	@.venv/bin/ruff format $(wildcard $(LINTED))

CONFORMANCE := $(foreach version,14 15 16 17 18,--server $(version)) \
	$(foreach mode,upsert append history,--mode $(mode)) \
	$(foreach reader,pyiceberg duckdb spark,--reader $(reader))

CONFORMANCE_KEPT := --results tests/conformance/results --page docs/reference/conformance.md

.PHONY: conformance
conformance: setup ## Every case on PostgreSQL 14 to 18, in every mode, through every reader (hours; a second call goes on)
	@$(ENV) && .venv/bin/tidegate conformance $(CONFORMANCE) $(CONFORMANCE_KEPT) $(ARGS)

.PHONY: conformance-mysql
conformance-mysql: setup ## Every case of MySQL and MariaDB on both servers, through every reader
	@$(ENV) && .venv/bin/tidegate conformance --source mysql --server mariadb --server mysql \
		$(foreach reader,pyiceberg duckdb spark,--reader $(reader)) $(CONFORMANCE_KEPT) $(ARGS)

.PHONY: soak
soak: setup ## Writers, random sweeps and kills for MINUTES (20), then a comparison of every row
	@$(ENV) && $(PY) -m benchmarks.soak --minutes $(or $(MINUTES),20) $(ARGS)

.PHONY: bench
bench: setup ## Measure, write benchmarks/results/*.json and the table in docs/reference
	@$(ENV) && $(PY) -m benchmarks $(ARGS)

.PHONY: docs
docs: setup ## Generate the reference pages from the code
	@$(ENV) && $(PY) docs/generate.py

.PHONY: site
site: setup ## Build the documentation's site into site/ (warnings are errors)
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict && echo "site/index.html"

.PHONY: lock
lock: ## Compile requirements*.lock (ARGS=--upgrade to move versions)
	@scripts/lock.sh $(ARGS)

.PHONY: clean
clean: down ## Remove .venv, local state and caches (source files stay)
	@rm -rf site .venv .tidegate .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@find include -name '*.egg-info' -type d -prune -exec rm -rf {} +

.PHONY: help
help: ## Show this
	@awk 'BEGIN { FS = ":.*## "; printf "Usage: make <target>\n" } \
	  /^##@ / { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  \033[36m%-17s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
