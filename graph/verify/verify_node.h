#ifndef REQUANT_GRAPH_VERIFY_VERIFY_NODE_H_
#define REQUANT_GRAPH_VERIFY_VERIFY_NODE_H_

// The verifier's checks of one node by itself; see verify.h.

#include <vector>

#include "graph/op_catalog.h"
#include "graph/verify/verify_report.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// Compares the attributes of a node with those its op declares: missing ones,
// unknown ones, values of the wrong type or not allowed, shapes and tensors
// that cannot be, functions that do not exist. `_x` attributes are anybody's.
// In a function's body a value may be left to the function's own attributes.
void CheckAttributes(const NodePlace& place, const OpEntry& op,
                     OpCatalog* catalog, ProblemList* problems);

// Compares the number and types of the tensors that a node reads, of which
// DT_INVALID stands for a type that is not known, with what its op takes.
void CheckInputTypes(const NodePlace& place, const OpEntry& op,
                     const std::vector<tensorflow::DataType>& inputs,
                     ProblemList* problems);

// Reports data inputs that stand after a control input.
void CheckInputOrder(const NodePlace& place, ProblemKind kind,
                     ProblemList* problems);

}  // namespace requant

#endif  // REQUANT_GRAPH_VERIFY_VERIFY_NODE_H_
