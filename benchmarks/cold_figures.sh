#!/usr/bin/env bash
# How long the first result takes on a new machine: `./requant run` or, with --test,
# `./requant test`, in a fresh clone with an empty home folder, so that nothing was
# compiled or fetched before. Measures a reference commit and HEAD one after the other:
#
#   benchmarks/cold_figures.sh [--test] [REFERENCE]
#
# Debian packages that are installed stay. The clones, their logs and the home folders
# are below FIGURES_FOLDER, or else in a temporary folder, which is removed at the end.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
command=run target=.45
if [[ ${1:-} == --test ]]; then
  command=test target=.5
  shift
fi
reference=${1:-922b830}

folder=${FIGURES_FOLDER:-}
if [[ -z $folder ]]; then
  folder=$(mktemp -d)
  trap 'chmod -R u+w "$folder" && rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

# measure COMMIT: prints the seconds that the command takes from nothing.
measure() {
  local place=$folder/$1-$command start end
  rm -rf "$place" && mkdir -p "$place/home"
  git clone --quiet --no-hardlinks "$root" "$place/clone" >&2
  git -C "$place/clone" checkout --quiet --detach "$1" >&2
  local surroundings=(env -u REQUANT_BAZEL_CACHE HOME="$place/home" XDG_CACHE_HOME="$place/home/.cache")
  start=$(date +%s.%N)
  (cd "$place/clone" && "${surroundings[@]}" ./requant "$command") >"$place/log.txt" 2>&1 ||
    { echo "failed: ./requant $command of $1:" >&2 && tail -n 20 "$place/log.txt" >&2 && exit 1; }
  end=$(date +%s.%N)
  (cd "$place/clone" && "${surroundings[@]}" bazel shutdown) >>"$place/log.txt" 2>&1 || true
  awk -v a="$start" -v b="$end" 'BEGIN { printf "%.1f\n", b - a }'
}

git -C "$root" rev-parse --quiet --verify "$reference^{commit}" >/dev/null ||
  { echo "no commit $reference" >&2 && exit 2; }
head=$(git -C "$root" rev-parse --short HEAD)
printf '%-16s %12s %12s %7s  %s\n' command "$reference, s" "$head, s" ratio target
before=$(measure "$reference")
after=$(measure "$head")
awk -v c="./requant $command" -v a="$before" -v b="$after" -v t="$target" 'BEGIN {
  printf "%-16s %12.1f %12.1f %7.2f  at most %s: %s\n", c, a, b, b / a, t, b / a <= t ? "met" : "MISSED" }'
