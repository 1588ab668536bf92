#include "absl/status/status.h"
#include "logs_parser/log_parser.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/ranges/freeze_ranges.h"
#include "transforms/transform.h"

namespace requant {
namespace {

absl::Status FreezeMax(TransformContext& context, tensorflow::GraphDef* graph) {
  return FreezeRanges(
      {"Max", RecordKind::kMax, {{0, false, "/frozen_max_only"}}}, context,
      graph);
}

REQUANT_REGISTER_TRANSFORM(
    FreezeMax,
    {"freeze_max",
     "Replaces the Max nodes that a quantization uses by constants from a "
     "calibration run.",
     "Of the observed maxima the one at 100 - max_percentile is taken. The "
     "constant is named <node>/frozen_max_only. Max nodes that are part of the "
     "model stay. A log of another graph, nodes that the log never mentions "
     "and values that are no numbers are errors; a graph without such nodes "
     "stays as it is.",
     FreezeParameters(),
     "insert_logging(op=Max, show_name=true, message=\"__max:\") and a "
     "calibration run"});

}  // namespace
}  // namespace requant
