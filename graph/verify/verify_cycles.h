#ifndef REQUANT_GRAPH_VERIFY_VERIFY_CYCLES_H_
#define REQUANT_GRAPH_VERIFY_VERIFY_CYCLES_H_

// The verifier's report of cycles; see verify.h.

#include <string>

#include "google/protobuf/repeated_ptr_field.h"
#include "graph/node_order.h"
#include "graph/verify/verify_report.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace requant {

// Whether an edge between nodes of these ops closes a v1 while loop, which is
// no cycle to TensorFlow.
bool IsLoopEdge(const std::string& producer_op, const std::string& consumer_op);

// Reports the cycles of `order`, whose numbers stand for `nodes`, with the
// first few names of each. `function` as in NodePlace.
void ReportCycles(
    const NodeOrder& order,
    const google::protobuf::RepeatedPtrField<tensorflow::NodeDef>& nodes,
    const tensorflow::OpDef* function, ProblemKind kind, ProblemList* problems);

}  // namespace requant

#endif  // REQUANT_GRAPH_VERIFY_VERIFY_CYCLES_H_
