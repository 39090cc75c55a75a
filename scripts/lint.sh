#!/usr/bin/env bash
# Every check that needs no server. All of them run; the exit code says whether one failed.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=0
check() {
    local name=$1 started=$SECONDS
    shift
    printf '\033[1m%s\033[0m\n' "$name"
    if "$@"; then
        printf '  ok (%s s)\n' $((SECONDS - started))
    else
        printf '  \033[31mfailed\033[0m\n'
        failed=1
    fi
}

folders=()
for folder in include tests demo dags plugins spark_jobs benchmarks scripts; do
    [ -d "$folder" ] && folders+=("$folder")
done

check "ruff check" .venv/bin/ruff check --quiet "${folders[@]}"
check "ruff format" .venv/bin/ruff format --check --quiet "${folders[@]}"
check "mypy" .venv/bin/mypy
check "import contracts" .venv/bin/lint-imports
check "generated reference" .venv/bin/python docs/generate.py --check
NO_MKDOCS_2_WARNING=1 check "documentation site" .venv/bin/mkdocs build --strict --site-dir .tidegate/site
exit $failed
