#ifndef REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_
#define REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_

// Finds the inputs of MatMuls and similar ops, in a graph and in the functions
// of its library, before which a QuantizeV2 and a Dequantize can be put, and
// the keys under which a RangeTable has the ranges of these inputs.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace requant {

enum class QdqInputs { kActivations, kWeights, kBoth };

// Parses "activations", "weights" or "both". An error lists these names.
absl::StatusOr<QdqInputs> ParseQdqInputs(std::string_view name);

struct QdqSiteOptions {
  // The ops whose inputs are sites; empty means DefaultQdqOps().
  std::vector<std::string> ops;
  QdqInputs inputs = QdqInputs::kBoth;
};

// Returns MatMul and the BatchMatMuls.
const std::vector<std::string>& DefaultQdqOps();

// One float input of a node.
struct QdqSite {
  // The function whose body has the node; "" for the graph itself.
  std::string function;
  // The function's number in the library; -1 for the graph itself.
  int function_number = -1;
  // Whether the graph's own nodes call the function, directly or not. Functions
  // that only a SavedModel's objects name are not reached. True for the graph
  // itself.
  bool reached = true;
  // The node and its number in the graph or function.
  std::string node;
  int32_t node_number = 0;
  // Index into the node's input().
  int input = 0;
  // The input's text: "x:1", or in a function "x:output:0" or "argument".
  std::string tensor;
  // The node or argument that gives the tensor, and the node's op; "" for an
  // argument.
  std::string producer;
  std::string producer_op;
  // Whether it is a weight (see WeightSources in qdq_sites.cc).
  bool is_weight = false;
  // (name, output): the producer's name in the graph itself or
  // "function::producer" in a function, and the number of its output counted
  // over all tensors it gives; an argument has output 0. Equal keys mean the
  // same tensor.
  RangeKey range;
};

// Returns " of function \"f\""; "" for the graph itself.
std::string OfFunction(std::string_view function);

struct QdqSites {
  // The graph's sites in the order of its nodes, then each function's.
  std::vector<QdqSite> sites;
  // Inputs that already come from a Dequantize.
  int already_quantized = 0;
  // Chosen inputs that are no sites, such as "node \"m\" of function \"f\", its
  // name is damaged".
  std::vector<std::string> skipped;
};

// Finds the DT_FLOAT inputs that are multiplied in nodes of the chosen ops.
// Takes time proportional to the size of the graph, which may be damaged in any
// way: what cannot be understood is no site. Fails for an op that has no such
// inputs, and if TensorFlow's op definitions cannot be loaded.
absl::StatusOr<QdqSites> FindQdqSites(const tensorflow::GraphDef& graph,
                                      const QdqSiteOptions& options);

// Returns the nodes of the function with this number in the library, or the
// graph's own nodes for -1.
google::protobuf::RepeatedPtrField<tensorflow::NodeDef>* MutableNodes(
    int function, tensorflow::GraphDef* graph);

// Finds names for new nodes in the graph or a function.
class FreeNames {
 public:
  FreeNames(const tensorflow::GraphDef& graph, int function);

  // Returns `base`, if need be with the first free one of "_1", "_2", …, and
  // marks the result as taken.
  std::string Take(const std::string& base);

 private:
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, int> suffixes_;
};

// The following serves to observe the ranges that insert_qdq needs in a session
// that has the graph and its variables. Tensors in functions cannot be fetched,
// but they can after the functions' bodies have replaced the calls.

struct QdqObserver {
  RangeKey range;
  // Whether its value is the same in every run.
  bool is_weight = false;
  // Tensors to fetch, "name:0": one for each place that calls the function.
  std::vector<std::string> tensors;
};

struct NotObserved {
  RangeKey range;
  // True if the outputs depend on it, though in a loop or under a condition;
  // false if they do not depend on it at all.
  bool is_needed = false;
};

struct QdqObservers {
  // Nodes to add to the session's graph (Session::Extend). They read existing
  // nodes, variables' handles among them, and duplicate what depends on a
  // call's body.
  tensorflow::GraphDef added;
  // In the order of the sites, without repeated keys.
  std::vector<QdqObserver> observers;
  // Keys, without repetition, of sites that no fetch can reach: those in
  // functions called conditionally or in loops (While, If), within a loop of
  // the graph itself, or not needed for the outputs at all.
  std::vector<NotObserved> not_observed;
};

// Makes observers for what `outputs`, tensors of the graph, depend on. Fails
// for ops without sites, functions that cannot be inlined and damaged graphs;
// TensorFlow's code for functions may abort on some of the latter.
absl::StatusOr<QdqObservers> MakeQdqObservers(
    const tensorflow::GraphDef& graph, const QdqSiteOptions& options,
    const std::vector<std::string>& outputs);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_
