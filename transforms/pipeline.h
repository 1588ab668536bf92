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
  // Check the graph before the first transform and after each one.
  bool verify = true;
  // Run only this many transforms; negative means all.
  int stop_after = -1;
  // Called after each transform, with the graph it left.
  std::function<absl::Status(std::string_view name, int index,
                             const tensorflow::GraphDef& graph)>
      on_finish = [](std::string_view, int, const tensorflow::GraphDef&) {
        return absl::OkStatus();
      };
  // Called with what transforms say to the user.
  std::function<void(std::string_view text)> on_note = [](std::string_view) {};
  std::function<void(std::string_view text)> on_warning = [](std::string_view) {
  };
};

// Fails unless all names and parameters are right; RunPipeline checks it first.
absl::Status CheckCalls(const std::vector<TransformCall>& calls,
                        const TransformRegistry& registry);

// Runs the transforms one after the other on *graph, and says which one runs
// (SetActivity), so that a crash can be explained. All names and parameters
// are checked before the first one runs. With `verify`, a graph that is broken
// from the start is refused, and a transform that breaks it is named. A kind of
// problem that the graph had before a transform is not blamed on it, nor is an
// op that its parameters name; both are only warnings, unless in the end a node
// lacks an input. On an error *graph is unspecified.
absl::Status RunPipeline(const std::vector<TransformCall>& calls,
                         const TransformRegistry& registry,
                         const PipelineOptions& options,
                         tensorflow::GraphDef* graph);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_PIPELINE_H_
