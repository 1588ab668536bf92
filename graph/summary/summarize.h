#ifndef REQUANT_GRAPH_SUMMARY_SUMMARIZE_H_
#define REQUANT_GRAPH_SUMMARY_SUMMARIZE_H_

// What someone who got a graph from someone else wants to know first: its
// inputs, its outputs, its size, its ops. Works on any GraphDef, also on a
// broken one (it says what is broken), in time linear in the graph's size and
// without TensorFlow's op definitions.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/summary/output_ranking.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

struct TensorSummary {
  // Of a tensor of a signature; its type, shape and name are then as the
  // signature gives them, and op is empty when the graph has no such node.
  std::string key;
  // As an input names it: "x", or "x:1" for an output other than the first.
  std::string name;
  std::string op;
  tensorflow::DataType type = tensorflow::DT_INVALID;
  // False when the node does not say.
  bool has_shape = false;
  tensorflow::TensorShapeProto shape;
};

struct SignatureSummary {
  std::string name;
  std::string method;
  // By key. A sparse tensor gives three, "key/values" and so on.
  std::vector<TensorSummary> inputs;
  std::vector<TensorSummary> outputs;
};

struct OutputSummary {
  std::string name;
  std::string op;
  OutputTier tier;
  int points;
};

struct GraphSummary {
  // For the caller of a SavedModel to fill in: its folder, and its graph's
  // tags, separated by commas, unless programs choose that graph by themselves.
  std::string saved_model;
  std::string saved_model_tags;

  int64_t nodes = 0;
  int64_t functions = 0;

  // A SavedModel's, the default one ("serving_default", else the first by name
  // that has outputs) first.
  std::vector<SignatureSummary> signatures;

  // Every Placeholder: those that signatures name first, then those that the
  // chosen outputs need, then the others, each group in graph order. A graph
  // without one lists what else can be fed: PlaceholderWithDefault, the
  // outputs of iterators and queues, or, when there are none, the serialized
  // records that ParseExample reads; `placeholders` is false then.
  std::vector<TensorSummary> inputs;
  bool placeholders = true;

  // Variable, VariableV2 and VarHandleOp.
  std::vector<TensorSummary> variables;

  // What TensorFlow's summarize_graph lists (nothing reads them), best first.
  std::vector<OutputSummary> outputs;
  // The best few of those and of the nodes that only training reads; never an
  // auxiliary or unconnected one.
  std::vector<OutputSummary> likely_outputs;

  // What a command line should name: the first signature's tensors; else the
  // likely outputs (only the best one when the graph has auxiliary parts) and
  // the inputs they need. The first outputs of nodes have no ":0".
  std::vector<TensorSummary> chosen_inputs;
  // Variable and VariableV2 that the chosen outputs need: benchmark_model feeds
  // them.
  std::vector<TensorSummary> chosen_variables;
  std::vector<std::string> chosen_outputs;

  // Elements, from shapes alone; sums end at INT64_MAX.
  int64_t const_parameters = 0;
  int64_t variable_parameters = 0;
  int64_t control_edges = 0;
  std::map<std::string, int64_t> devices;
  // Most frequent first, then by name; functions' nodes count too.
  std::vector<std::pair<std::string, int64_t>> ops;

  // Inputs that name no node, as (node, missing node).
  std::vector<std::pair<std::string, std::string>> invalid_inputs;
  // Other defects, one sentence each.
  std::vector<std::string> problems;
};

GraphSummary SummarizeGraph(const tensorflow::GraphDef& graph);
GraphSummary SummarizeMetaGraph(const tensorflow::MetaGraphDef& meta);

// A summary in words. Each returned text ends in a line break. Control
// characters in names are shown as \xNN, so that no name can forge a line.

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

}  // namespace requant

#endif  // REQUANT_GRAPH_SUMMARY_SUMMARIZE_H_
