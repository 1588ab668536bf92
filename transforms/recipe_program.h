#ifndef REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_
#define REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_

// What the programs of the published recipe that change a graph have in common.

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
  // The graph's outputs, and the flag that names them. What they do not need is
  // left out, unless there are none; one that is not in the graph is an error
  // that names the flag, the file, and the node that may be meant.
  std::vector<std::string> outputs;
  std::string outputs_flag;
  double timeout_seconds = 0;
  Parameters parameters;
  // Changes the graph, with these outputs and parameters.
  absl::Status (*change)(TransformContext&, tensorflow::GraphDef*);
};

// Serves as the program's main: parses the flags, asks `usage_problem` whether
// they make sense, and then runs `program`, which reads them, in a child
// process. The graph must be one that TensorFlow could load, before and after.
int RecipeMain(int argc, char** argv, ProgramHelp help,
               std::optional<std::string> (*usage_problem)(),
               RecipeProgram (*program)());

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_RECIPE_PROGRAM_H_
