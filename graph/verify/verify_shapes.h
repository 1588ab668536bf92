#ifndef REQUANT_GRAPH_VERIFY_VERIFY_SHAPES_H_
#define REQUANT_GRAPH_VERIFY_VERIFY_SHAPES_H_

// The verifier's shape inference; see verify.h.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "graph/node_order.h"
#include "graph/op_catalog.h"
#include "graph/verify/verify_report.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace requant {

// Runs the shape functions of the nodes in `order` and reports those that
// refuse their inputs. Some of TensorFlow's functions crash on odd constants,
// so it is done in a copy of this process (see RunForked); such a crash is a
// problem too, and the last one. Fails when there can be no such copy. The
// graph must be free of other problems: `inputs` and `ports` (parallel to
// inputs.producer) resolved, data before control inputs, attributes and types
// checked. What only TensorFlow's constant folding or the handles of resources
// could tell stays unknown, so nothing valid is refused.
absl::Status CheckShapes(const tensorflow::GraphDef& graph,
                         const std::vector<const OpEntry*>& ops,
                         const NodeInputs& inputs,
                         const std::vector<int32_t>& ports,
                         const std::vector<int32_t>& order,
                         ProblemList* problems);

}  // namespace requant

#endif  // REQUANT_GRAPH_VERIFY_VERIFY_SHAPES_H_
