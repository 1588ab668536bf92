#include "graph/const_node.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/constant_store.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

using tensorflow::NodeDef;
using tensorflow::Tensor;
using tensorflow::TensorShape;

namespace {

// A few bytes can claim any shape, with one value for all elements, and
// unpacking them would exhaust memory. Real constants fit into a graph of 2 GB.
bool IsOfBearableSize(const tensorflow::TensorProto& proto) {
  constexpr int64_t kMostElements = int64_t{1} << 31;
  TensorShape shape;
  return TensorShape::BuildTensorShape(proto.tensor_shape(), &shape).ok() &&
         shape.num_elements() <= kMostElements;
}

}  // namespace

NodeDef MakeConst(const std::string& name, const Tensor& value) {
  NodeDef node;
  node.set_name(name);
  node.set_op("Const");
  (*node.mutable_attr())["dtype"].set_type(value.dtype());
  // Small tensors are written as typed fields, which are readable in text.
  auto* proto = (*node.mutable_attr())["value"].mutable_tensor();
  if (StoreValue(value, proto)) return node;
  if (value.NumElements() <= 1) {
    value.AsProtoField(proto);
  } else {
    value.AsProtoTensorContent(proto);
  }
  return node;
}

NodeDef MakeScalarConst(const std::string& name, float value) {
  return MakeConst(name, Tensor(value));
}

absl::StatusOr<Tensor> ConstValue(const NodeDef& node) {
  if (node.op() != "Const") {
    return absl::InvalidArgumentError(absl::StrCat(
        "node \"", node.name(), "\" is a ", node.op(), ", not a Const"));
  }
  const auto value = node.attr().find("value");
  if (value != node.attr().end()) {
    if (auto stored = StoredValue(value->second.tensor())) return *stored;
  }
  Tensor tensor;
  if (value == node.attr().end() || !value->second.has_tensor() ||
      !IsOfBearableSize(value->second.tensor()) ||
      !tensor.FromProto(value->second.tensor())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the Const \"", node.name(), "\" has no readable value"));
  }
  return tensor;
}

absl::StatusOr<float> ScalarConstValue(const NodeDef& node) {
  REQUANT_ASSIGN_OR_RETURN(const Tensor tensor, ConstValue(node));
  if (tensor.dtype() != tensorflow::DT_FLOAT || tensor.NumElements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the Const \"", node.name(), "\" is not one float but ",
                     tensorflow::DataType_Name(tensor.dtype()), " of shape ",
                     tensor.shape().DebugString()));
  }
  return tensor.flat<float>()(0);
}

}  // namespace requant
