#ifndef REQUANT_GRAPH_CONST_NODE_H_
#define REQUANT_GRAPH_CONST_NODE_H_

// Makes Const nodes and reads their values safely.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// Returns a Const node that holds `value`.
tensorflow::NodeDef MakeConst(const std::string& name,
                              const tensorflow::Tensor& value);

// Returns a scalar float Const.
tensorflow::NodeDef MakeScalarConst(const std::string& name, float value);

// Returns the tensor of a Const node. Fails, naming the node, if it is not a
// Const or its value is missing or damaged.
absl::StatusOr<tensorflow::Tensor> ConstValue(const tensorflow::NodeDef& node);

// Returns the value of a float Const with one element.
absl::StatusOr<float> ScalarConstValue(const tensorflow::NodeDef& node);

}  // namespace requant

#endif  // REQUANT_GRAPH_CONST_NODE_H_
