#include "transforms/eightbit/portable_matmuls.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/layers/graph_builder.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

// Inputs of the fused ops after those of MatMulInput: the output's range.
constexpr int kMinOut = kInputs;
constexpr int kMaxOut = kInputs + 1;

// Returns whether the matmul has the form that quantize_static gives it.
bool CanBePortable(const NodeDef& node) {
  return (node.op() == kFusedRelu || node.op() == kFusedFloat) &&
         node.input_size() > kMaxOut &&
         TypeAttribute(node, "T1") == tensorflow::DT_QUINT8 &&
         !BoolAttribute(node, "transpose_b") &&
         StringAttribute(node, "input_quant_mode") == "SCALED" &&
         TypeAttribute(node, "Tbias") == tensorflow::DT_QINT32;
}

// Returns the bias in float: _QuantizedMatMul is wrong with a qint32 bias for
// SCALED inputs.
absl::StatusOr<std::optional<Tensor>> FloatBias(const GraphIndex& index,
                                                const NodeDef& matmul) {
  const NodeDef* bias = index.Producer(matmul, kBias);
  const auto max_a = ConstantInput(index, matmul, kMaxA);
  const auto max_w = ConstantInput(index, matmul, kMaxW);
  if (bias == nullptr || bias->op() != "Const" || !max_a || !max_w) {
    return std::optional<Tensor>();
  }
  REQUANT_ASSIGN_OR_RETURN(const Tensor codes, ConstValue(*bias));
  if (codes.dtype() != tensorflow::DT_QINT32) return std::optional<Tensor>();
  const double step =
      static_cast<double>(*max_a) * static_cast<double>(*max_w) / (255 * 127);
  Tensor result(tensorflow::DT_FLOAT, codes.shape());
  for (int64_t j = 0; j < codes.NumElements(); ++j) {
    result.flat<float>()(j) =
        static_cast<float>(codes.flat<tensorflow::qint32>()(j).value * step);
  }
  return std::optional<Tensor>(std::move(result));
}

void SetList(const char* attribute,
             const std::vector<tensorflow::DataType>& types, NodeDef* node) {
  auto* list = (*node->mutable_attr())[attribute].mutable_list();
  list->Clear();
  for (const tensorflow::DataType type : types) list->add_type(type);
}

void SetPortableAttributes(bool relu, NodeDef* node) {
  const tensorflow::DataType output =
      relu ? tensorflow::DT_QUINT8 : tensorflow::DT_FLOAT;
  node->set_op("_QuantizedMatMul");
  node->clear_attr();
  SetTypes({{"T1", tensorflow::DT_QUINT8},
            {"T2", tensorflow::DT_QINT8},
            {"Tbias", tensorflow::DT_FLOAT},
            {"U", tensorflow::DT_FLOAT},
            {"Tout", output}},
           node);
  SetList("Tdevice_inputs",
          {tensorflow::DT_QUINT8, tensorflow::DT_QINT8, tensorflow::DT_FLOAT},
          node);
  SetList("Thost_inputs",
          std::vector<tensorflow::DataType>(relu ? 6 : 4, tensorflow::DT_FLOAT),
          node);
  SetList("Tdevice_outputs", {output}, node);
  SetList("Thost_outputs",
          std::vector<tensorflow::DataType>(relu ? 2 : 0, tensorflow::DT_FLOAT),
          node);
  auto& attributes = *node->mutable_attr();
  auto* fused = attributes["fused_ops"].mutable_list();
  fused->add_s("BiasAdd");
  if (relu) fused->add_s("Relu");
  fused->add_s(relu ? "Requantize" : "Dequantize");
  attributes["transpose_a"].set_b(false);
  attributes["transpose_b"].set_b(false);
  attributes["is_weight_const"].set_b(true);
  attributes["is_bias_const"].set_b(true);
  attributes["input_quant_mode"].set_s("SCALED");
  attributes["output_quant_mode"].set_s("SCALED");
}

}  // namespace

absl::StatusOr<int> MakeMatMulsPortable(GraphIndex* index) {
  std::vector<NodeDef*> matmuls;
  for (const NodeDef& node : index->graph().node()) {
    if (CanBePortable(node)) matmuls.push_back(index->Find(node.name()));
  }
  int made = 0;
  for (NodeDef* node : matmuls) {
    REQUANT_ASSIGN_OR_RETURN(std::optional<Tensor> bias,
                             FloatBias(*index, *node));
    if (!bias.has_value()) continue;
    NodeDef constant =
        MakeConst(index->FreeName(absl::StrCat(node->name(), "_bias")), *bias);
    std::vector<std::string> inputs(node->input().begin(), node->input().end());
    inputs[kBias] = constant.name();
    const bool relu = node->op() == kFusedRelu;
    // Dequantize, unlike its form among the old ops, has no output range.
    if (!relu) {
      inputs.erase(inputs.begin() + kMinOut, inputs.begin() + kMaxOut + 1);
    }
    REQUANT_RETURN_IF_ERROR(index->Add(std::move(constant)).status());
    const std::vector<std::string> before(node->input().begin(),
                                          node->input().end());
    index->SetInputs(node, std::move(inputs));
    SetPortableAttributes(relu, node);
    for (const std::string& input : before) {
      const std::string name(NodeOf(input));
      const NodeDef* producer = index->Find(name);
      if (producer != nullptr && producer->op() == "Const" &&
          !index->HasUses(name)) {
        REQUANT_RETURN_IF_ERROR(index->Remove(name));
      }
    }
    ++made;
  }
  return made;
}

}  // namespace requant
