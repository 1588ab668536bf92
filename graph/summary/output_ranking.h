#ifndef REQUANT_GRAPH_SUMMARY_OUTPUT_RANKING_H_
#define REQUANT_GRAPH_SUMMARY_OUTPUT_RANKING_H_

// Finds the model's output among a graph's many loose ends.
//
// A training graph ends in hundreds of nodes that nothing reads: optimizer
// steps, savers, summaries. This library separates the prediction from them by
// the graph alone (names, ops, wiring; no op definitions).
//
// First every node is classified:
//   auxiliary   it serves training or bookkeeping: its op assigns, saves,
//               restores, summarizes, enqueues, measures a loss or a gradient;
//               a scope in its name says so (gradients/, save/, loss/,
//               metrics/, …_summary); it only updates variables; or it is
//               computed from such a node, or from the labels (sources that a
//               cross-entropy op reads as labels and its logits do not need).
//   forward     it is computed from an input (placeholder, iterator, queue)
//               without passing through an auxiliary node or one that reads
//               only its input's shape (Shape, ZerosLike, …).
//   parametric  it is computed likewise from weights: a variable, or a float
//               or quantized Const of two or more dimensions.
// Then candidates are sorted by tier, then by points, then by their place in
// the graph (TensorFlow's own order).

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/graph_wiring.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace requant {

enum class OutputTier {
  kAuxiliary,    // as above
  kUnconnected,  // no input reaches it
  kForward,      // computed from an input
  kPrediction,   // forward, parametric if the graph has weights, and with a
                 // point for its name or its op
  kSignature,    // a signature of the SavedModel names it
};

struct NodeParts {
  std::vector<bool> auxiliary;
  std::vector<bool> forward;
  std::vector<bool> parametric;
  bool any_auxiliary = false;
  bool any_parametric = false;
};

NodeParts FindNodeParts(const tensorflow::GraphDef& graph,
                        const GraphWiring& wiring);

struct RankedOutput {
  int node;
  OutputTier tier;
  // The sum of: up to 40 for the last word of the name (probabilities,
  // predictions, logits, …) and 10 for a scope of that kind; up to 25 for the
  // op (Softmax, Sigmoid, ArgMax, …), looking through Identity, Reshape and the
  // like; 10 for a parametric node; 5 for a known shape [?,…], minus 20 for a
  // scalar; minus 5 for text; minus 200 for each signature before its own.
  int points;
  // Whether it is unused and TensorFlow's summarize_graph would list it. Other
  // candidates are forward nodes that no forward node reads.
  bool terminal;
};

// Returns all candidates, best first. `signature_nodes` are the output nodes of
// signatures, each with the number of its first signature.
std::vector<RankedOutput> RankOutputs(
    const tensorflow::GraphDef& graph, const GraphWiring& wiring,
    const NodeParts& parts,
    const absl::flat_hash_map<int, int>& signature_nodes);

// Returns the name of the output that is the prediction: the only one, or the
// one whose name alone has the most points of those that may be; else "".
std::string LikelyPrediction(const tensorflow::SignatureDef& signature);

// Returns whether the op feeds the graph: a placeholder, iterator or queue.
bool IsInputOp(std::string_view op);
bool IsVariableOp(std::string_view op);

}  // namespace requant

#endif  // REQUANT_GRAPH_SUMMARY_OUTPUT_RANKING_H_
