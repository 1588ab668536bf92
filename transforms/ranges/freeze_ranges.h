#ifndef REQUANT_TRANSFORMS_RANGES_FREEZE_RANGES_H_
#define REQUANT_TRANSFORMS_RANGES_FREEZE_RANGES_H_

// The common part of freeze_requantization_ranges, freeze_min and freeze_max.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "logs_parser/log_parser.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/transform.h"

namespace requant {

// A value that replaces one output of a frozen node.
struct FrozenOutput {
  int port;
  // True: the lower tail of the minima. False: the upper tail of the maxima.
  bool is_min;
  // The Const is named <node><suffix>.
  std::string suffix;
};

struct FreezeRule {
  // Nodes of this op are frozen.
  std::string op;
  // Log lines of this kind hold their ranges.
  RecordKind record_kind;
  std::vector<FrozenOutput> outputs;
  // The original freeze_min used the wrong tail, which compat=true reproduces.
  bool compat_takes_upper_tail_of_mins = false;
};

// Replaces the nodes that `rule` describes with constants chosen from the logs
// or range tables that context.parameters name.
absl::Status FreezeRanges(const FreezeRule& rule, TransformContext& context,
                          tensorflow::GraphDef* graph);

// Returns the parameters of all three transforms.
std::vector<ParameterSpec> FreezeParameters();

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_RANGES_FREEZE_RANGES_H_
