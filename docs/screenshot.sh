#!/usr/bin/env bash
# docs/screenshot.sh RUN_FOLDER: the picture of a run's report in README.md
# (docs/report.png), by Debian's chromium, which `./requant test` installs.
set -euo pipefail
[[ $# -eq 1 && -f $1/report.html ]] || { echo "usage: docs/screenshot.sh RUN_FOLDER (with a report.html)" >&2; exit 2; }
report=$(readlink -f "$1/report.html")
picture=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/report.png
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
chromium --headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$profile" \
  --window-size="${WIDTH:-1240},${HEIGHT:-1750}" --screenshot="$picture" "file://$report" 2>/dev/null
size=$(stat -c %s "$picture")
((size <= 300000)) || { echo "docs/report.png has $size bytes, more than 300000: try a smaller HEIGHT" >&2; exit 1; }
echo "docs/report.png: $size bytes"
