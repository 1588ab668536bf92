#!/usr/bin/env bash
# Whether two commits make the same of the shipped workflows, to the byte:
#
#   benchmarks/same_bytes.sh REFERENCE
#
# Builds REFERENCE and then HEAD in one clone, runs each workflow with both, and compares
# the files of the two run folders. Of results.json, times, speeds, command lines, notes
# and task keys, which contain digests of the programs, are not compared. The clone and the
# runs are below FIGURES_FOLDER, or else in a temporary folder, which is removed at the end.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
reference=$(git -C "$root" rev-parse --verify "${1:?"usage: benchmarks/same_bytes.sh REFERENCE"}^{commit}")
head=$(git -C "$root" rev-parse HEAD)
workflows=(wide_deep wide_deep_fast gptj_tiny_qdq)
folder=${FIGURES_FOLDER:-}
if [[ -z $folder ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
# The paths are the same for both commits.
clone=$folder/clone
[[ -d $clone ]] || git clone --quiet --no-hardlinks "$root" "$clone"
git -C "$clone" fetch --quiet "$root" "$head" "$reference"

# run_all COMMIT NAME: leaves the run folders in $folder/NAME.
run_all() {
  local workflow
  git -C "$clone" checkout --quiet --detach "$1"
  rm -rf "${folder:?}/$2" "$folder/run"
  "$clone/requant" build
  for workflow in "${workflows[@]}"; do
    "$clone/requant" run "$workflow" --work_dir="$folder/run/work" --out="$folder/run/$workflow" >"$folder/log.txt" 2>&1 ||
      { echo "$workflow of $1 failed:" >&2 && tail -n 20 "$folder/log.txt" >&2 && exit 1; }
  done
  rm -rf "$folder/run/work" && mv "$folder/run" "$folder/$2"
}

# figures NAME WORKFLOW: prints results.json without what may differ.
figures() {
  /usr/bin/python3 - "$folder/$1/$2/results.json" <<'PY'
import json, sys

VARIES = {"started", "start", "seconds", "work_seconds", "key", "commands", "command", "benchmark", "speed", "notes"}

def same(value):
    if isinstance(value, list):
        return [same(v) for v in value]
    if not isinstance(value, dict):
        return value
    if str(value.get("path")).endswith((".evaluation.pb", ".benchmark.pb", "speed.txt")):
        return value["path"]  # They hold times.
    return {k: same(v) for k, v in value.items() if k not in VARIES and "_speed" not in k and "per_second" not in k}

json.dump(same(json.load(open(sys.argv[1]))), sys.stdout, indent=1)
PY
}

run_all "$reference" reference
run_all "$head" head
status=0
# These hold times, or digests of files that do.
diff -rq -x results.json -x results.csv -x report.html -x manifest.json -x commands.sh -x 'events.*' \
  -x '*.evaluation.pb' -x '*.benchmark.pb' -x speed.txt "$folder/reference" "$folder/head" || status=1
for workflow in "${workflows[@]}"; do
  diff <(figures reference "$workflow") <(figures head "$workflow") || status=1
done
[[ $status -ne 0 ]] || echo "the same: $(find "$folder/head" -type f | wc -l) files of ${#workflows[@]} runs"
exit $status
