#ifndef REQUANT_GRAPH_SUMMARY_SUMMARIZE_H_
#define REQUANT_GRAPH_SUMMARY_SUMMARIZE_H_

// Summarizes what someone who received a graph wants to know first: its inputs,
// outputs, size and ops. Works on any GraphDef, even a broken one (whose
// problems it lists), in time linear in the graph's size and without
// TensorFlow's op definitions.

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
  // The key of a signature's tensor. Type, shape and name are then as the
  // signature gives them, and op is empty if the graph has no such node.
  std::string key;
  // The name as in an input: "x", or "x:1" for an output other than the first.
  std::string name;
  std::string op;
  tensorflow::DataType type = tensorflow::DT_INVALID;
  // Whether the node specifies a shape.
  bool has_shape = false;
  tensorflow::TensorShapeProto shape;
};

struct SignatureSummary {
  std::string name;
  std::string method;
  // The tensors by key. A sparse tensor gives three, "key/values" and so on.
  std::vector<TensorSummary> inputs;
  std::vector<TensorSummary> outputs;
  // An earlier signature whose inputs and outputs are the same in all but the
  // nodes, such as Keras's "serving_default" for "serve", or "".
  std::string same_as;
  // LikelyPrediction (graph/summary/output_ranking.h).
  std::string prediction;
};

struct OutputSummary {
  std::string name;
  std::string op;
  OutputTier tier;
  int points;
};

struct GraphSummary {
  // Set by the caller for a SavedModel: its folder, and its graph's tags,
  // separated by commas, unless programs choose that graph by themselves.
  std::string saved_model;
  std::string saved_model_tags;

  int64_t nodes = 0;
  int64_t functions = 0;

  // A SavedModel's signatures, starting with the default one:
  // "serving_default", or else the first by name that has outputs.
  std::vector<SignatureSummary> signatures;
  // The signature of which a graph kept the names (graph/signature_names.h).
  SignatureSummary kept_signature;

  // All Placeholders: first those that signatures name, then those that the
  // chosen outputs need, then the others, each group in graph order. A graph
  // without any lists what else can be fed: PlaceholderWithDefault, the outputs
  // of iterators and queues, or, if there are none, the serialized records that
  // ParseExample reads; `placeholders` is then false.
  std::vector<TensorSummary> inputs;
  bool placeholders = true;

  // The Variable, VariableV2 and VarHandleOp nodes.
  std::vector<TensorSummary> variables;

  // The unused nodes that TensorFlow's summarize_graph lists, best first.
  std::vector<OutputSummary> outputs;
  // The best few of these and of the nodes that only training reads, but never
  // an auxiliary or unconnected one, nor one of a signature like an earlier
  // one.
  std::vector<OutputSummary> likely_outputs;

  // What a command line should name: the first signature's tensors, or else the
  // likely outputs (only the best one if the graph has auxiliary parts) and the
  // inputs they need. The first outputs of nodes have no ":0".
  std::vector<TensorSummary> chosen_inputs;
  // The Variable and VariableV2 nodes that the chosen outputs need;
  // benchmark_model feeds them.
  std::vector<TensorSummary> chosen_variables;
  std::vector<std::string> chosen_outputs;

  // Element counts, from shapes alone; sums are capped at INT64_MAX.
  int64_t const_parameters = 0;
  int64_t variable_parameters = 0;
  int64_t control_edges = 0;
  std::map<std::string, int64_t> devices;
  // Sorted by descending count, then by name, including functions' nodes.
  std::vector<std::pair<std::string, int64_t>> ops;

  // Inputs that name no node, as (node, missing node).
  std::vector<std::pair<std::string, std::string>> invalid_inputs;
  // Other defects, one sentence each.
  std::vector<std::string> problems;
};

GraphSummary SummarizeGraph(const tensorflow::GraphDef& graph);
GraphSummary SummarizeMetaGraph(const tensorflow::MetaGraphDef& meta);

// Formats a summary. Each returned text ends in a line break. Control
// characters in names are shown as \xNN, so that no name can forge a line.

// Returns the lines of TensorFlow's summarize_graph, which scripts parse, in
// its spelling and order, with our own lines among them:
//   Found 2 signatures: …            and a line for each of their tensors
//   These inputs are no placeholders: …
//   Most likely output: …            before TensorFlow's list of outputs
//   Problem: …
//   Records of yours, …              by which names they feed the model
//   To go on: …                      with command lines that work as they are,
//                                    the last one with records for RECORDS
// Unlike in TensorFlow's, a graph with missing inputs is reported completely,
// each device has a line, variable parameters are counted (from shapes), and
// the arguments for benchmark_model, which is not part of this project, name
// the chosen inputs and outputs; without outputs they are omitted.
std::string TextReport(const GraphSummary& summary,
                       const std::string& graph_path);

// Returns one JSON object. `structure`, unless null, adds every node in
// execution order.
std::string JsonReport(const GraphSummary& summary,
                       const std::string& graph_path,
                       const tensorflow::GraphDef* structure);

// Returns a line for each node in execution order, as --print_structure prints
// it: "name (op): [inputs]", with a Const's first values unless they cannot be
// read or exceed the 256 MB allowed for unfolding all Consts.
std::string StructureReport(const tensorflow::GraphDef& graph);

}  // namespace requant

#endif  // REQUANT_GRAPH_SUMMARY_SUMMARIZE_H_
