#include "tests/support/emitted_ops.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/layers/quantized_layer.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::DT_QINT32;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

class Checker {
 public:
  explicit Checker(const GraphDef& graph)
      : graph_(graph), index_(GraphIndex::Create(&graph_).value()) {}

  std::vector<std::string> Run() {
    for (const NodeDef& node : graph_.node()) {
      node_ = &node;
      if (absl::StartsWith(node.op(), kQuantizedMatMul)) MatMul();
      if (node.op() == "Dequantize") Dequantize();
      Check(node.op() == "_QuantizedMatMul", "is left to later versions");
      Check(node.op() == "QuantizeV2" && Producer(0).op() == "Const",
            "quantizes a constant, by another formula than what is fed");
      const DataType type = TypeAttribute(node, "T");
      Check(((node.op() == "Transpose" || node.op() == "Tile" ||
              node.op() == "SelectV2") &&
             (type == DT_QUINT8 || type == DT_QINT8)) ||
                (node.op() == "Split" && type == DT_QINT8),
            "has no kernel for codes");
    }
    return std::move(found_);
  }

  std::vector<std::string> Pairs() {
    for (const NodeDef& node : graph_.node()) {
      node_ = &node;
      if (absl::StartsWith(node.op(), "QuantizedMatMul")) WeightPairs();
    }
    return std::move(found_);
  }

 private:
  // Records that the node does `what`, if `so`.
  void Check(bool so, const std::string& what) {
    if (!so) return;
    found_.push_back(
        absl::StrCat(node_->name(), " (", node_->op(), ") ", what));
  }

  const NodeDef& Producer(int input) const {
    const NodeDef* const producer = index_.Producer(*node_, input);
    return producer == nullptr ? NodeDef::default_instance() : *producer;
  }

  // Returns whether input number `input` of `node`, a range's minimum, is zero
  // in every run.
  bool IsZero(const NodeDef& node, int input) const {
    const NodeDef* const producer = index_.Producer(node, input);
    if (producer == nullptr) return false;
    if (producer->op() == "Const") {
      const auto value = ScalarConstValue(*producer);
      return value.ok() && *value == 0;
    }
    const int port = ParseTensorName(node.input(input)).port;
    if (producer->op() == "RequantizationRange" && port == 0) {
      const NodeDef* const sums = index_.Producer(*producer, 0);
      return sums != nullptr && absl::EndsWith(sums->op(), "AndRelu");
    }
    if (port != 1) return false;
    if (producer->op() == "QuantizeV2") return IsZero(*producer, 1);
    if (producer->op() == "Requantize") return IsZero(*producer, kOutMin);
    return absl::EndsWith(producer->op(), "AndReluAndRequantize") &&
           IsZero(*producer, kInputs);
  }

  void MatMul() {
    const std::string& op = node_->op();
    Check(TypeAttribute(*node_, "T1") != DT_QUINT8, "takes input of signs");
    Check(TypeAttribute(*node_, "T2") != DT_QINT8, "takes unsigned weights");
    Check(BoolAttribute(*node_, "transpose_a") ||
              BoolAttribute(*node_, "transpose_b"),
          "transposes");
    Check(absl::EndsWith(op, "BiasAndRequantize"), "clips negative outputs");
    Check(absl::EndsWith(op, "Requantize") &&
              TypeAttribute(*node_, "Toutput") != DT_QUINT8,
          "has outputs with signs");
    const bool scaled =
        StringAttribute(*node_, "input_quant_mode", "MIN_FIRST") == "SCALED";
    const bool from_zero = IsZero(*node_, kMinA);
    Check(scaled && !from_zero, "is SCALED with a minimum that is not zero");
    Check(!scaled && !from_zero && TypeAttribute(*node_, "Tbias") != DT_QINT32,
          "is MIN_FIRST with a float bias and a minimum that is not zero");
    WeightRange();
  }

  void WeightRange() {
    const auto min = ScalarConstValue(Producer(kMinW));
    const auto max = ScalarConstValue(Producer(kMaxW));
    const bool constant = min.ok() && max.ok();
    Check(!constant, "has a weight range that is no constant scalar");
    Check(constant && *min != -*max,
          "has a weight range that is not symmetric");
    const auto codes = ConstValue(Producer(kWeights));
    Check(!codes.ok(), "has weights that are no constant");
    if (!codes.ok()) return;
    const auto flat = codes->flat<tensorflow::qint8>();
    bool below = false;
    for (int64_t i = 0; i < flat.size(); ++i) below |= flat(i).value < -127;
    Check(below, "has a weight below -127");
  }

  void WeightPairs() {
    const auto codes = ConstValue(Producer(kWeights));
    Check(!codes.ok(), "has weights that are no constant");
    if (!codes.ok()) return;
    const auto matrix = codes->matrix<tensorflow::qint8>();
    for (int64_t k = 0; k + 1 < matrix.dimension(0); k += 2) {
      for (int64_t j = 0; j < matrix.dimension(1); ++j) {
        const int sum = matrix(k, j).value + matrix(k + 1, j).value;
        if (std::abs(sum) <= 128) continue;
        return Check(true, absl::StrCat("has a pair of weights that add up to ",
                                        sum, ", in row ", k));
      }
    }
  }

  void Dequantize() {
    const std::string mode = StringAttribute(*node_, "mode", "MIN_COMBINED");
    const DataType type = TypeAttribute(*node_, "T");
    Check(type == DT_QINT32 && mode == "SCALED",
          "has no kernel for SCALED sums");
    Check(type == DT_QUINT8 && mode == "MIN_FIRST" && !IsZero(*node_, 1),
          "rounds the zero point, which oneDNN's quantization does not");
  }

  GraphDef graph_;
  const GraphIndex index_;
  const NodeDef* node_ = nullptr;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> WrongCombinations(const GraphDef& graph) {
  return Checker(graph).Run();
}

std::vector<std::string> OverflowingPairs(const GraphDef& graph) {
  return Checker(graph).Pairs();
}

}  // namespace requant
