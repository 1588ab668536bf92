#include "tests/kernels/kernel_graph.h"

#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/public/session.h"

namespace requant {
namespace {

using tensorflow::DataType;

// Calls `use` with a value of the quantized type.
template <typename Use>
void WithCodeType(DataType type, const Use& use) {
  switch (type) {
    case tensorflow::DT_QUINT8:
      return use(tensorflow::quint8());
    case tensorflow::DT_QINT8:
      return use(tensorflow::qint8());
    case tensorflow::DT_QINT32:
      return use(tensorflow::qint32());
    default:
      ADD_FAILURE() << "no codes in a tensor of type " << DataType_Name(type);
  }
}

}  // namespace

KernelGraph::KernelGraph() = default;
KernelGraph::~KernelGraph() = default;

void KernelGraph::Feed(const std::string& name, const Tensor& value) {
  feeds_.emplace_back(name, value);
  Add(absl::StrCat(name, " = Placeholder dtype=", TypeText(value.dtype())));
}

void KernelGraph::Constant(const std::string& name, const Tensor& value) {
  *graph_.add_node() = MakeConst(name, value);
}

void KernelGraph::Constant(const std::string& name, float value) {
  *graph_.add_node() = MakeScalarConst(name, value);
}

void KernelGraph::Add(const std::string& lines) { AddNodes(lines, &graph_); }

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

Tensor CodeTensor(DataType type, const tensorflow::TensorShape& shape,
                  const std::vector<int>& codes) {
  Tensor tensor(type, shape);
  WithCodeType(type, [&](auto code) {
    auto flat = tensor.flat<decltype(code)>();
    for (int i = 0; i < flat.size(); ++i) flat(i).value = codes[i];
  });
  return tensor;
}

std::vector<int> Codes(const Tensor& tensor) {
  std::vector<int> codes;
  WithCodeType(tensor.dtype(), [&](auto code) {
    const auto flat = tensor.flat<decltype(code)>();
    for (int i = 0; i < flat.size(); ++i) codes.push_back(flat(i).value);
  });
  return codes;
}

std::string TypeText(DataType type) { return tensorflow::DataTypeString(type); }

}  // namespace requant
