# Sourced by scripts that measure the embedded Wide & Deep model.

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
model=$root/workflows/wide_deep
programs=$root/bazel-bin

# records FILE SPLIT ROWS: makes preprocessed records.
records() {
  "$programs/runtime/datasets/dataset" synthesize --split="$2" --rows="$3" --format=preprocessed \
    --ranges="$model/ranges.json" --output="$1" >/dev/null
}

# float_graph FOLDER: makes FOLDER/fp32.pb by steps 2 to 4 of the recipe.
float_graph() {
  local output=head/predictions/probabilities
  "$programs/graph/freeze_graph" --input_saved_model_dir="$model/model" --output_graph="$1/frozen.pb" \
    --output_node_names=$output >/dev/null
  "$programs/transforms/transform_graph" --in_graph="$1/frozen.pb" --out_graph="$1/tidy.pb" --outputs=$output \
    --transforms='strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) fold_constants(ignore_errors=true)' \
    >/dev/null
  "$programs/transforms/featurecolumn_graph_optimization" --input-graph "$1/tidy.pb" --output-graph "$1/fp32.pb" \
    --output-nodes $output --wide_and_deep_large_ds True >/dev/null
}
