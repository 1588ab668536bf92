#ifndef REQUANT_GRAPH_SUMMARY_SUMMARY_REPORT_H_
#define REQUANT_GRAPH_SUMMARY_SUMMARY_REPORT_H_

// A GraphSummary in words. Each returned text ends in a line break. Control
// characters in names are shown as \xNN, so that no name can forge a line.

#include <string>
#include <vector>

#include "graph/summary/summarize.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Returns the lines of TensorFlow's summarize_graph in its spelling and order,
// which scripts parse. Lines of our own stand between them:
//   Found 2 signatures: …            and a line for each of their tensors
//   These inputs are no placeholders: …
//   Most likely output: …            before TensorFlow's list of outputs
//   Problem: …
//   To go on: …                      with command lines that work as they are
// Unlike TensorFlow's, a graph with missing inputs is reported to the end, each
// device has a line, variable parameters are counted (from shapes), and the
// arguments for benchmark_model, which is not part of this project, name the
// chosen inputs and outputs; without outputs there are none.
std::string TextReport(const GraphSummary& summary,
                       const std::string& graph_path);

// Returns one JSON object. `structure` (null: none) adds every node, in
// execution order.
std::string JsonReport(const GraphSummary& summary,
                       const std::string& graph_path,
                       const tensorflow::GraphDef* structure);

// Returns a line for each node in execution order, as --print_structure gives
// them: "name (op): [inputs]", for a Const with its first values unless they
// cannot be read or would unfold to more than 256 MB (all such Consts).
std::string StructureReport(const tensorflow::GraphDef& graph);

// Returns arguments for TensorFlow's benchmark_model.
std::string BenchmarkArguments(const GraphSummary& summary,
                               const std::string& graph_path);

// Returns command lines to paste into a shell, one after the other, that freeze
// and optimize the model; none when it is not known how.
std::vector<std::string> NextCommands(const GraphSummary& summary,
                                      const std::string& graph_path);

}  // namespace requant

#endif  // REQUANT_GRAPH_SUMMARY_SUMMARY_REPORT_H_
