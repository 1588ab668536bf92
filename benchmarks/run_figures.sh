#!/usr/bin/env bash
# The figures of the workflow runner: `requant run` of the embedded default, from
# nothing and once more, against the same evaluations and logging runs done as a
# chain of Python scripts does them (benchmarks/peers/evaluate.py, one process
# each, and TensorFlow's freeze_graph.py) on the same graphs and records, one
# after the other on this machine:
#
#   benchmarks/run_figures.sh [FLAG OF requant run]...
#
# The scripts' sum leaves out what they would need for the other steps: those
# scripts do not run on a TensorFlow of today. It leaves out the benchmark too.
# Files stay in .requant/run_figures (or FIGURES_FOLDER), the peer's Python in
# .requant/peers (or PEERS_FOLDER).
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
folder=${FIGURES_FOLDER:-$root/.requant/run_figures}
"$root/requant" build
python=$("$root/benchmarks/peers/install.sh" ${PEERS_FOLDER:+"$PEERS_FOLDER"})
rm -rf "$folder" && mkdir -p "$folder"
cd "$folder"

# seconds COMMAND...: runs it, and prints how long that took.
seconds() {
  local start
  start=$(date +%s.%N)
  "$@" >>log.txt 2>&1 || { echo "failed: $* (see $folder/log.txt)" >&2; exit 1; }
  awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f\n", b - a }'
}

run=("$root/requant" run --work_dir=work "$@")
first=$(seconds "${run[@]}" --output=first)
second=$(seconds "${run[@]}" --output=second)

scripts=0
# script NAME ARGUMENT...: one of the scripts, timed and added to their sum.
script() {
  local took
  took=$(seconds "$python" "${@:2}")
  printf '  %6.1f s  %s\n' "$took" "$1"
  scripts=$(awk -v a="$scripts" -v b="$took" 'BEGIN { print a + b }')
}
evaluate() { # GRAPH RECORDS BATCH_SIZE [--raw]
  script "$1" "$root/benchmarks/peers/evaluate.py" --graph="first/$1" --data="first/$2" --batch_size="$3" "${@:4}"
}
echo "freezing, evaluations and logging runs as Python scripts:"
script freeze_graph.py -m tensorflow.python.tools.freeze_graph --input_saved_model_dir="$root/workflows/wide_deep/model" \
  --output_node_names=head/predictions/probabilities --output_graph="$folder/frozen.pb"
for graph in wide_deep_frozen_fp32_graph.pb wide_deep_fp32_graph.pb; do
  evaluate $graph dataset_raw_eval.tfrecords 512 --raw
done
for graph in optimized_wide_deep_fp32_graph.pb int8_dynamic_range_wide_deep_graph.pb freezed_range_int8_wide_deep.pb \
  freezed_range_int8_wide_deep_freezemin.pb freezed_range_int8_wide_deep_minmaxfreeze.pb final_int8_wide_deep.pb; do
  evaluate $graph dataset_preprocessed_eval.tfrecords 512
done
for graph in logged_int8_dynamic_range_wide_deep.pb logged_freezed_range_int8_wide_deep.pb \
  logged_max_freezed_range_int8_wide_deep.pb; do
  evaluate $graph dataset_preprocessed_train.tfrecords 1024
done

# For how long some stage was at work, from the results.
stages=$(/usr/bin/python3 - first/results.json <<'PY'
import json, sys
def spans(value):
    if isinstance(value, list):
        return [span for item in value for span in spans(item)]
    if not isinstance(value, dict):
        return []
    work = value.get("work") or {}
    own = [(work["start"], work["start"] + work["seconds"])] if work.get("seconds") else []
    return own + [span for key, item in value.items() if key != "work" for span in spans(item)]
busy = end = 0
for start, stop in sorted(spans(json.load(open(sys.argv[1])))):
    busy += max(0, stop - max(start, end))
    end = max(end, stop)
print("%.2f" % busy)
PY
)
awk -v run="$first" -v again="$second" -v stages="$stages" -v scripts="$scripts" 'BEGIN {
  printf "requant run, from nothing: %.1f s, of which its stages %.1f s (overhead %.1f %%)\n", run, stages, 100 * (run - stages) / stages
  printf "requant run, once more: %.2f s\n", again
  printf "scripts, without most steps: %.1f s, %.1f times as long\n", scripts, scripts / run }'
