#!/usr/bin/env bash
# Renew the third-party files of the browser page from npm: include/tidegate/api/static/vendor (shipped)
# and tests/page/vendor (axe-core). Needs node and npm; only who changes a version runs it, so that
# neither an installation nor a test does. Versions: scripts/page_vendor/package.json.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SHIPPED=include/tidegate/api/static/vendor TESTED=tests/page/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp scripts/page_vendor/* "$work"
(cd "$work" && npm install --no-package-lock --no-audit --no-fund --loglevel=error)
mkdir -p $SHIPPED $TESTED
modules=$work/node_modules
esbuild() { "$modules/.bin/esbuild" --log-level=warning --minify --format=esm --target=es2022 --legal-comments=none "$@"; }
esbuild "$work/preact.js" --bundle --outfile=$SHIPPED/preact.js
esbuild "$modules/uplot/dist/uPlot.esm.js" --outfile=$SHIPPED/uplot.js
cp "$modules/uplot/dist/uPlot.min.css" $SHIPPED/uplot.css
cp "$modules/axe-core/axe.min.js" $TESTED/axe.min.js

licences() {
    local name
    for name in "$@"; do
        printf '## %s %s\n\n```text\n' "$name" "$(node -p "require('$modules/$name/package.json').version")"
        cat "$modules/$name/LICENSE"
        printf '\n```\n\n'
    done
}
{ printf '# Licences of the files in this folder\n\n'; licences preact htm @preact/signals @preact/signals-core uplot; } >$SHIPPED/LICENSES.md
{ printf '# Licences of the files in this folder (tests only)\n\n'; licences axe-core; } >$TESTED/LICENSES.md
