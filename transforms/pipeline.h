#ifndef REQUANT_TRANSFORMS_PIPELINE_H_
#define REQUANT_TRANSFORMS_PIPELINE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/pipeline_parser.h"
#include "transforms/registry.h"

namespace requant {

struct PipelineOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  // Checks the graph before the first transform and after each one.
  bool verify = true;
  // Runs only this many transforms; negative means all.
  int stop_after = -1;
  // Is called after each transform with the resulting graph.
  std::function<absl::Status(std::string_view name, int index,
                             const tensorflow::GraphDef& graph)>
      on_finish = [](std::string_view, int, const tensorflow::GraphDef&) {
        return absl::OkStatus();
      };
  // Is called with the messages of transforms to the user.
  std::function<void(std::string_view text)> on_note = [](std::string_view) {};
  std::function<void(std::string_view text)> on_warning = [](std::string_view) {
  };
};

// Fails unless all names and parameters are right. RunPipeline calls it first.
absl::Status CheckCalls(const std::vector<TransformCall>& calls,
                        const TransformRegistry& registry);

// Runs the transforms in order on *graph, and records which one is running
// (SetActivity), so that a crash can be explained. All names and parameters are
// checked before the first one runs. With `verify`, a graph that is broken from
// the start is refused, and a transform that breaks it is named. A transform is
// not blamed for a kind of problem that the graph already had, nor for an op
// that its parameters name; both are only warnings, unless a node lacks an
// input at the end. On an error *graph is unspecified.
absl::Status RunPipeline(const std::vector<TransformCall>& calls,
                         const TransformRegistry& registry,
                         const PipelineOptions& options,
                         tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_PIPELINE_H_
