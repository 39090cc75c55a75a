#!/usr/bin/env bash
# Compile the locks. No index address is written: a lock says what, not from where.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:.venv/bin  # set-up installs uv there where the machine has none
export UV_CUSTOM_COMPILE_COMMAND="make lock"
for name in requirements requirements-dev; do
    echo "compiling $name.lock"
    uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url "$@" \
        "$name.txt" -o "$name.lock"
done
