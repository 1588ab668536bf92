#ifndef REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_
#define REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_

// Where a QuantizeV2 and a Dequantize can be put before an input of a MatMul
// or its like, in a graph and in the functions of its library; and under which
// key a RangeTable has the range of what is read there.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

enum class QdqInputs { kActivations, kWeights, kBoth };

// Parses "activations", "weights" or "both"; fails for others and lists these.
absl::StatusOr<QdqInputs> ParseQdqInputs(std::string_view name);

struct QdqSiteOptions {
  // Ops whose inputs are sites; empty means DefaultQdqOps().
  std::vector<std::string> ops;
  QdqInputs inputs = QdqInputs::kBoth;
};

// Returns MatMul and the BatchMatMuls.
const std::vector<std::string>& DefaultQdqOps();

// One float input of a node.
struct QdqSite {
  // The function whose body has the node; "" for the graph itself.
  std::string function;
  // Its number in the library; -1 for the graph itself.
  int function_number = -1;
  // Whether the graph's own nodes call the function, directly or not; the
  // functions that only a SavedModel's objects name are not reached. True in
  // the graph itself.
  bool reached = true;
  // The node, and its number among the graph's or the function's.
  std::string node;
  int32_t node_number = 0;
  // Index into the node's input().
  int input = 0;
  // What stands there: "x:1", in a function "x:output:0" or "argument".
  std::string tensor;
  // The node or argument that gives the tensor, and its type's name; "" for an
  // argument.
  std::string producer;
  std::string producer_op;
  // A constant or a variable's value, see WeightSources in qdq_sites.cc.
  bool is_weight = false;
  // (name, output): the producer's name in the graph itself and
  // "function::producer" in a function, and the number of its output counted
  // over all tensors it gives; an argument has output 0. Equal keys are the
  // same tensor.
  RangeKey range;
};

// A chosen input that is no site, and why.
struct QdqSkip {
  std::string function;
  std::string node;
  std::string why;
};

struct QdqSites {
  // The graph's in the order of its nodes, then each function's.
  std::vector<QdqSite> sites;
  // Inputs that already come from a Dequantize.
  int already_quantized = 0;
  std::vector<QdqSkip> skipped;
};

// Finds the DT_FLOAT inputs that are multiplied in nodes of the chosen ops.
// Takes time in proportion to the size of the graph, which may be damaged in
// any way: what cannot be understood is no site. Fails for an op that has no
// such inputs and when TensorFlow's op definitions cannot be loaded.
absl::StatusOr<QdqSites> FindQdqSites(const tensorflow::GraphDef& graph,
                                      const QdqSiteOptions& options);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_
