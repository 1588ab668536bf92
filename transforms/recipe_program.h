#ifndef REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_
#define REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_

// The common part of the published recipe's programs that change a graph.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/program/flags.h"
#include "graph/graph_io.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/transform.h"

namespace requant {

struct RecipeProgram {
  std::string in_graph;
  std::string out_graph;
  GraphFormat format = GraphFormat::kBinary;
  // The graph's outputs, and the flag that names them. If there are any, nodes
  // that they do not need are removed; one that is not in the graph is an error
  // that names the flag, the file, and the node that may be meant.
  std::vector<std::string> outputs;
  std::string outputs_flag;
  double timeout_seconds = 0;
  Parameters parameters;
  // Changes the graph, given the outputs and parameters.
  absl::Status (*change)(TransformContext&, tensorflow::GraphDef*);
};

// Serves as the program's main: parses the flags, asks `usage_problem` whether
// they make sense, and then runs `program`, which reads them, in a child
// process. Both the input and the output graph must be loadable by TensorFlow.
int RecipeMain(int argc, char** argv, ProgramHelp help,
               std::optional<std::string> (*usage_problem)(),
               RecipeProgram (*program)());

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_
