#include "workflows/language/programs.h"

#include <string_view>
#include <vector>

namespace requant {

const std::vector<Program>& Programs() {
  static const auto* const programs = new std::vector<Program>{
      {"benchmark", "speed of graphs against each other", "runtime",
       "benchmark_graph", true},
      {"calibrate", "ranges of a graph's tensors on a dataset", "runtime",
       "calibrate_graph", true},
      {"convert", "a SavedModel with its graph transformed, variables and all",
       "runtime", "convert_model", false, true},
      {"dataset", "make records: synthesize them, or preprocess Criteo's",
       "runtime/datasets", "dataset"},
      {"diff", "what changed between two graphs", "graph", "diff_graphs", false,
       true, 1},
      {"dump_graph", "the graph of a SavedModel as a file", "graph",
       "dump_graph"},
      {"evaluate", "accuracy and speed of a graph on a dataset", "runtime",
       "evaluate_graph", true},
      {"freeze", "one graph without variables from a trained model", "graph",
       "freeze_graph", false, true},
      {"parse_log", "tables of the ranges in calibration logs", "logs_parser",
       "parse_min_max_log"},
      {"pb_to_pbtxt", "a binary graph as text", "graph", "pb_to_pbtxt"},
      {"quantize", "an int8 graph from a frozen float one, in one go",
       "runtime", "quantize_model", true, true},
      {"quantize_graph",
       "eight-bit layers with dynamic ranges (recipe, step 6)", "transforms",
       "quantize_graph", false, true},
      {"summarize", "inputs, outputs and size of a graph or SavedModel",
       "transforms", "summarize_graph"},
      {"transform", "apply graph transforms, TensorFlow's and ours",
       "transforms", "transform_graph", false, true},
  };
  return *programs;
}

const Program* FindProgram(std::string_view command) {
  for (const Program& program : Programs()) {
    if (program.command == command) return &program;
  }
  return nullptr;
}

}  // namespace requant
