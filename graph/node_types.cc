#include "graph/node_types.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace requant {

absl::StatusOr<std::vector<tensorflow::DataType>> OutputTypes(
    const tensorflow::NodeDef& node) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  const tensorflow::OpDef* op = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok()) {
    return absl::NotFoundError(
        absl::StrCat("node \"", node.name(), "\" has the op \"", node.op(),
                     "\", which TensorFlow does not know"));
  }
  tensorflow::NodeDef complete = node;
  tensorflow::AddDefaultsToNodeDef(*op, &complete);
  tensorflow::DataTypeVector types;
  const absl::Status status =
      tensorflow::OutputTypesForNode(complete, *op, &types);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node \"", node.name(), "\" (", node.op(), "): ", status.message()));
  }
  return std::vector<tensorflow::DataType>(types.begin(), types.end());
}

}  // namespace requant
