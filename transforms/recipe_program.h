#ifndef REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_
#define REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_

// What the programs of the published recipe that change a graph have in common.

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Leaves out the nodes that none of `outputs` needs. An output that is not in
// the graph is an error that names the flag and the file it came from, and the
// node that may be meant.
absl::Status KeepWhatIsNeeded(const std::vector<std::string>& outputs,
                              std::string_view flag, std::string_view file,
                              tensorflow::GraphDef* graph);

// An error when TensorFlow could not load the graph; `which` is an adjective
// for it, such as "input". Says so by SetActivity (base/program/isolation.h).
absl::Status CheckGraph(const tensorflow::GraphDef& graph,
                        std::string_view which);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_
