#include "absl/status/status.h"
#include "logs_parser/log_parser.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/ranges/freeze_ranges.h"
#include "transforms/transform.h"

namespace requant {
namespace {

absl::Status FreezeMin(TransformContext& context, tensorflow::GraphDef* graph) {
  return FreezeRanges({"Min",
                       RecordKind::kMin,
                       {{0, true, "/frozen_min_only"}},
                       /*compat_takes_upper_tail_of_mins=*/true},
                      context, graph);
}

REQUANT_REGISTER_TRANSFORM(
    FreezeMin,
    {"freeze_min",
     "Replaces the Min nodes that a quantization uses by constants from a "
     "calibration run.",
     "Of the observed minima the one at min_percentile is taken (the original "
     "took the one at 100 - min_percentile, the least negative; compat=true "
     "does so again). The constant is named <node>/frozen_min_only. Min nodes "
     "that are part of the model stay. A log of another graph, nodes that the "
     "log never mentions and values that are no numbers are errors; a graph "
     "without such nodes stays as it is.",
     FreezeParameters(),
     "insert_logging(op=Min, show_name=true, message=\"__min:\") and a "
     "calibration run"});

}  // namespace
}  // namespace requant
