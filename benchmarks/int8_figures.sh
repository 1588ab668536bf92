#!/usr/bin/env bash
# The figures of int8 on the embedded Wide & Deep model: makes its fp32 graph and
# records, installs neural-compressor, lets both quantize, and compares:
#
#   benchmarks/int8_figures.sh [--quantize=COMMAND] [FLAG OF int8_benchmark]...
#
# COMMAND makes the graph $INT8 of the fp32 graph $FP32 with the 10,000
# calibration records $CALIBRATION; without it, requant quantize does, for the
# CPUs that TARGET names (any). Files stay in .requant/figures (or
# FIGURES_FOLDER), the peer in .requant/peers (or PEERS_FOLDER).
set -euo pipefail
# shellcheck source=benchmarks/wide_deep.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/wide_deep.sh"
folder=${FIGURES_FOLDER:-$root/.requant/figures}

"$root/requant" setup
(cd "$root" && bazel build --ui_event_filters=-info --noshow_progress //:programs //benchmarks:int8_benchmark) >&2
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
export FP32=$folder/fp32.pb CALIBRATION=$folder/calibration.tfrecords INT8=$folder/int8.pb PEER=$folder/peer.pb
records "$CALIBRATION" train 10000
records "$folder/eval.tfrecords" eval 200000

float_graph "$folder"

PEER_PYTHON=$("$root/benchmarks/peers/install.sh" ${PEERS_FOLDER:+"$PEERS_FOLDER"})
export PEER_PYTHON PEER_SCRIPT=$root/benchmarks/peers/quantize.py
export REQUANT=$programs/workflows/requant DATASET=$model/preprocessed.textproto TARGET=${TARGET:-any}
# shellcheck disable=SC2016
exec "$programs/benchmarks/int8_benchmark" --fp32="$FP32" --int8="$INT8" --peer="$PEER" \
  --quantize_peer='"$PEER_PYTHON" "$PEER_SCRIPT" --input="$FP32" --data="$CALIBRATION" --output="$PEER" 2>"$PEER.log"' \
  --quantize='"$REQUANT" quantize --graph="$FP32" --dataset="$DATASET" --data="$CALIBRATION" --target="$TARGET" --output="$INT8"' \
  --dataset="$DATASET" --data="$folder/eval.tfrecords" "$@"
