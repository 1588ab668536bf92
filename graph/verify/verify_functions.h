#ifndef REQUANT_GRAPH_VERIFY_VERIFY_FUNCTIONS_H_
#define REQUANT_GRAPH_VERIFY_VERIFY_FUNCTIONS_H_

// The verifier's checks of a function library; see verify.h.

#include "graph/op_catalog.h"
#include "graph/verify/verify_report.h"
#include "tensorflow/core/framework/function.pb.h"

namespace requant {

// Checks every function: its name, the nodes of its body, what their inputs and
// its results name, types where they do not depend on the caller, cycles.
void CheckFunctions(const tensorflow::FunctionDefLibrary& library,
                    OpCatalog* catalog, ProblemList* problems);

}  // namespace requant

#endif  // REQUANT_GRAPH_VERIFY_VERIFY_FUNCTIONS_H_
