#include "tests/kernels/kernel_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/tensorflow_library.h"
#include "graph/testing/testing.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/public/session.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;

tensorflow::TensorShape Shape(const std::vector<int>& sizes) {
  tensorflow::TensorShape shape;
  for (int size : sizes) shape.AddDim(size);
  return shape;
}

template <typename T>
void Fill(const std::vector<int>& codes, Tensor* tensor) {
  auto flat = tensor->flat<T>();
  for (int i = 0; i < flat.size(); ++i) flat(i).value = codes[i];
}

template <typename T>
std::vector<int> CodesOf(const Tensor& tensor) {
  std::vector<int> codes;
  const auto flat = tensor.flat<T>();
  for (int i = 0; i < flat.size(); ++i) codes.push_back(flat(i).value);
  return codes;
}

}  // namespace

KernelGraph::KernelGraph() = default;
KernelGraph::~KernelGraph() = default;

std::string KernelGraph::Feed(const std::string& name, const Tensor& value) {
  feeds_.emplace_back(name, value);
  return Add(name, "Placeholder", {},
             {{"dtype", absl::StrCat("type: ", DataType_Name(value.dtype()))}});
}

std::string KernelGraph::Constant(const std::string& name,
                                  const Tensor& value) {
  *graph_.add_node() = MakeConst(name, value);
  return name;
}

std::string KernelGraph::Constant(const std::string& name, float value) {
  *graph_.add_node() = MakeScalarConst(name, value);
  return name;
}

std::string KernelGraph::Add(const std::string& name, const std::string& op,
                             const std::vector<std::string>& inputs,
                             const std::vector<AttributeText>& attributes) {
  graph_.MergeFrom(GraphFromText(Node(name, op, inputs, attributes)));
  return name;
}

void KernelGraph::FeedAnew(const std::string& name, const Tensor& value) {
  for (auto& [fed, tensor] : feeds_) {
    if (fed == name) tensor = value;
  }
}

absl::StatusOr<std::vector<Tensor>> KernelGraph::Run(
    const std::vector<std::string>& fetches) {
  if (session_ == nullptr) {
    REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
    session_.reset(tensorflow::NewSession(tensorflow::SessionOptions()));
    if (session_ == nullptr) return absl::InternalError("no session");
    REQUANT_RETURN_IF_ERROR(session_->Create(graph_));
  }
  std::vector<Tensor> outputs;
  REQUANT_RETURN_IF_ERROR(session_->Run(feeds_, fetches, {}, &outputs));
  return outputs;
}

Tensor FloatTensor(const std::vector<int>& shape,
                   const std::vector<float>& values) {
  Tensor tensor(tensorflow::DT_FLOAT, Shape(shape));
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}

Tensor IntTensor(const std::vector<int>& shape,
                 const std::vector<int>& values) {
  Tensor tensor(tensorflow::DT_INT32, Shape(shape));
  std::copy(values.begin(), values.end(), tensor.flat<int>().data());
  return tensor;
}

Tensor CodeTensor(DataType type, const std::vector<int>& shape,
                  const std::vector<int>& codes) {
  Tensor tensor(type, Shape(shape));
  if (type == tensorflow::DT_QUINT8) Fill<tensorflow::quint8>(codes, &tensor);
  if (type == tensorflow::DT_QINT8) Fill<tensorflow::qint8>(codes, &tensor);
  if (type == tensorflow::DT_QINT32) Fill<tensorflow::qint32>(codes, &tensor);
  return tensor;
}

std::vector<float> Floats(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return std::vector<float>(flat.data(), flat.data() + flat.size());
}

std::vector<int> Codes(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case tensorflow::DT_QUINT8:
      return CodesOf<tensorflow::quint8>(tensor);
    case tensorflow::DT_QINT8:
      return CodesOf<tensorflow::qint8>(tensor);
    case tensorflow::DT_QINT32:
      return CodesOf<tensorflow::qint32>(tensor);
    default:
      ADD_FAILURE() << "no codes in a tensor of type "
                    << DataType_Name(tensor.dtype());
      return {};
  }
}

}  // namespace requant
