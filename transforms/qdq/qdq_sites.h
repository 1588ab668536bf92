#ifndef REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_
#define REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_

// Where a QuantizeV2 and a Dequantize can be put before an input of a MatMul
// or its like, in a graph and in the functions of its library; and under which
// key a RangeTable has the range of what is read there.

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

// Returns " of function \"f\""; "" for the graph itself.
std::string OfFunction(std::string_view function);

struct QdqSites {
  // The graph's in the order of its nodes, then each function's.
  std::vector<QdqSite> sites;
  // Inputs that already come from a Dequantize.
  int already_quantized = 0;
  // Chosen inputs that are no sites: "node \"m\" of function \"f\", its name is
  // damaged".
  std::vector<std::string> skipped;
};

// Finds the DT_FLOAT inputs that are multiplied in nodes of the chosen ops.
// Takes time in proportion to the size of the graph, which may be damaged in
// any way: what cannot be understood is no site. Fails for an op that has no
// such inputs and when TensorFlow's op definitions cannot be loaded.
absl::StatusOr<QdqSites> FindQdqSites(const tensorflow::GraphDef& graph,
                                      const QdqSiteOptions& options);

// Returns the nodes of a function, by its number in the library, or with -1 the
// graph's own.
google::protobuf::RepeatedPtrField<tensorflow::NodeDef>* MutableNodes(
    int function, tensorflow::GraphDef* graph);

// Names for new nodes in such a place.
class FreeNames {
 public:
  FreeNames(const tensorflow::GraphDef& graph, int function);

  // Returns `base`, if need be with the first free of "_1", "_2", …, which is
  // taken then.
  std::string Take(const std::string& base);

 private:
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, int> suffixes_;
};

// How the ranges that insert_qdq needs can be observed in a session that has
// the graph, its variables loaded: tensors in functions cannot be fetched, but
// those of the functions' bodies put in place of the calls can.

struct QdqObserver {
  RangeKey range;
  // Its value is the same in every run.
  bool is_weight = false;
  // To fetch, "name:0": one for every place that the function is called from.
  std::vector<std::string> tensors;
};

struct NotObserved {
  RangeKey range;
  // The outputs depend on it, but in a loop or under a condition; else they do
  // not depend on it at all.
  bool is_needed = false;
};

struct QdqObservers {
  // Nodes to add to the session's graph (Session::Extend). They read nodes that
  // are there, variables' handles among them, and repeat what depends on a
  // call's body.
  tensorflow::GraphDef added;
  // In the order of the sites, each key once.
  std::vector<QdqObserver> observers;
  // Keys of sites that no fetch can reach, each once: those of functions that
  // are called conditionally or in loops (While, If), within a loop of the
  // graph's own, or not for the outputs at all.
  std::vector<NotObserved> not_observed;
};

// Observes what `outputs`, tensors of the graph, depend on. Fails for an op
// without sites, for functions that cannot be inlined and for a damaged graph;
// TensorFlow's code for functions may abort on some of those.
absl::StatusOr<QdqObservers> MakeQdqObservers(
    const tensorflow::GraphDef& graph, const QdqSiteOptions& options,
    const std::vector<std::string>& outputs);

}  // namespace requant

#endif  // REQUANT_TRANSFORMS_QDQ_QDQ_SITES_H_
