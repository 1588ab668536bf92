#include "absl/status/status.h"
#include "logs_parser/log_parser.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/ranges/freeze_ranges.h"
#include "transforms/transform.h"

namespace requant {
namespace {

absl::Status FreezeRequantizationRanges(TransformContext& context,
                                        tensorflow::GraphDef* graph) {
  return FreezeRanges({"RequantizationRange",
                       RecordKind::kRequantMinMax,
                       {{0, true, "/frozen_min"}, {1, false, "/frozen_max"}}},
                      context, graph);
}

REQUANT_REGISTER_TRANSFORM(
    FreezeRequantizationRanges,
    {"freeze_requantization_ranges",
     "Replaces RequantizationRange nodes by constants from a calibration run.",
     "Of a node's observed minima the one at min_percentile is taken, of its "
     "maxima the one at 100 - max_percentile. The constants are named "
     "<node>/frozen_min and <node>/frozen_max. A log of another graph, nodes "
     "that the log never mentions and values that are no numbers are errors; a "
     "graph without such nodes stays as it is.",
     FreezeParameters(),
     "insert_logging(op=RequantizationRange, show_name=true, "
     "message=\"__requant_min_max:\") and a calibration run"});

}  // namespace
}  // namespace requant
