#!/usr/bin/env bash
# How fast int8 graphs of --ops=portable are beside those of --ops=legacy and fp32, on the embedded
# Wide & Deep model, by kind of CPU and for both ways to use two cores:
#
#   benchmarks/ops_figures.sh [FLAG OF requant benchmark]...
#
# Lesser CPUs than this one are shown by caps on what oneDNN may use; caps do nothing to the rest of
# TensorFlow. Files stay in .requant/figures (or FIGURES_FOLDER).
set -euo pipefail
# shellcheck source=benchmarks/wide_deep.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/wide_deep.sh"
folder=${FIGURES_FOLDER:-$root/.requant/figures}

"$root/requant" build
mkdir -p "$folder"
records "$folder/calibration.tfrecords" train 10000
records "$folder/eval.tfrecords" eval 50000
float_graph "$folder"
for ops in legacy portable; do
  "$programs/runtime/quantize_model" --graph="$folder/fp32.pb" --dataset="$model/preprocessed.textproto" \
    --data="$folder/calibration.tfrecords" --ops=$ops --output="$folder/$ops.pb" >/dev/null
done

# compare HEADING ONEDNN_OPTS CAP GRAPH...: each graph's speed is divided by that of the first.
compare() {
  local graph graphs=() ways
  for graph in "${@:4}"; do graphs+=(--graph="$folder/$graph.pb"); done
  for ways in "1 2" "2 1"; do
    echo "== $1, ${ways/ / x }"
    env TF_ENABLE_ONEDNN_OPTS="$2" ${3:+ONEDNN_MAX_CPU_ISA=$3} "$programs/runtime/benchmark_graph" "${graphs[@]}" \
      --dataset="$model/preprocessed.textproto" --data="$folder/eval.tfrecords" \
      --streams="${ways% *}" --threads="${ways#* }" --rounds=21 "${flags[@]}"
  done
}

flags=("$@")
for cap in "" AVX512_CORE AVX2; do
  cpu=${cap:-"this CPU"} && cpu=${cpu/AVX512_CORE/AVX512 without VNNI}
  compare "$cpu, oneDNN on" 1 "$cap" legacy portable fp32
  # So a stock process runs on CPUs without VNNI. The older ops have no kernels there.
  compare "$cpu, oneDNN off" 0 "$cap" fp32 portable
done
