#ifndef REQUANT_TRANSFORMS_QDQ_QDQ_OBSERVERS_H_
#define REQUANT_TRANSFORMS_QDQ_QDQ_OBSERVERS_H_

// How the ranges that insert_qdq needs can be observed in a session that has
// the graph, its variables loaded: tensors in functions cannot be fetched, but
// those of the functions' bodies put in place of the calls can.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ranges/range_table.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "transforms/qdq/qdq_sites.h"

namespace requant {

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

#endif  // REQUANT_TRANSFORMS_QDQ_QDQ_OBSERVERS_H_
