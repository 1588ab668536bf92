#include "tests/support/emitted_ops.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Inputs of QuantizedMatMulWithBias….
enum : int { kInput, kWeights, kBias, kMinA, kMaxA, kMinB, kMaxB };

bool IsCode(DataType type) {
  return type == tensorflow::DT_QUINT8 || type == tensorflow::DT_QINT8;
}

class Checker {
 public:
  explicit Checker(const GraphDef& graph) : graph_(graph) {
    for (const NodeDef& node : graph.node()) nodes_[node.name()] = &node;
  }

  std::vector<std::string> Run() {
    for (const NodeDef& node : graph_.node()) {
      node_ = &node;
      if (absl::StartsWith(node.op(), "QuantizedMatMulWithBias")) MatMul();
      if (node.op() == "_QuantizedMatMul") Say("is left to later versions");
      if (node.op() == "Dequantize") Dequantize();
      if (node.op() == "QuantizeV2" && Producer(0).op() == "Const") {
        Say("quantizes a constant, by another formula than what is fed");
      }
      OtherOp();
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
  void Say(const std::string& what) {
    found_.push_back(
        absl::StrCat(node_->name(), " (", node_->op(), ") ", what));
  }

  DataType Type(const std::string& attribute) const {
    const auto found = node_->attr().find(attribute);
    return found == node_->attr().end() ? tensorflow::DT_INVALID
                                        : found->second.type();
  }

  std::string Text(const std::string& attribute,
                   const std::string& by_default) const {
    const auto found = node_->attr().find(attribute);
    return found == node_->attr().end() ? by_default : found->second.s();
  }

  bool Flag(const std::string& attribute) const {
    const auto found = node_->attr().find(attribute);
    return found != node_->attr().end() && found->second.b();
  }

  // Returns the node and port that `tensor` names.
  std::pair<const NodeDef*, int> Find(const std::string& tensor) const {
    static const NodeDef* const kNone = new NodeDef;
    const size_t colon = tensor.rfind(':');
    const auto found = nodes_.find(tensor.substr(0, colon));
    return {found == nodes_.end() ? kNone : found->second,
            colon == std::string::npos ? 0 : std::atoi(&tensor[colon + 1])};
  }

  const NodeDef& Producer(int input) const {
    return *Find(node_->input(input)).first;
  }

  // Returns whether `tensor`, the minimum of a range, is zero in every run.
  bool IsZero(const std::string& tensor) const {
    const auto [node, port] = Find(tensor);
    if (node->op() == "Const") {
      const auto value = ScalarConstValue(*node);
      return value.ok() && *value == 0;
    }
    if (node->op() == "RequantizationRange" && port == 0) {
      return absl::EndsWith(Find(node->input(0)).first->op(), "AndRelu");
    }
    if (port != 1) return false;
    if (node->op() == "QuantizeV2") return IsZero(node->input(1));
    if (node->op() == "Requantize") return IsZero(node->input(3));
    return absl::EndsWith(node->op(), "AndReluAndRequantize") &&
           IsZero(node->input(kMaxB + 1));
  }

  void MatMul() {
    const std::string& op = node_->op();
    if (Type("T1") != tensorflow::DT_QUINT8) Say("takes input of signs");
    if (Type("T2") != tensorflow::DT_QINT8) Say("takes unsigned weights");
    if (Flag("transpose_a") || Flag("transpose_b")) Say("transposes");
    if (absl::EndsWith(op, "BiasAndRequantize")) {
      Say("clips negative outputs");
    }
    if (absl::EndsWith(op, "Requantize") &&
        Type("Toutput") != tensorflow::DT_QUINT8) {
      Say("has outputs with signs");
    }
    const bool scaled = Text("input_quant_mode", "MIN_FIRST") == "SCALED";
    const bool from_zero = IsZero(node_->input(kMinA));
    if (scaled && !from_zero) Say("is SCALED with a minimum that is not zero");
    if (!scaled && !from_zero && Type("Tbias") != tensorflow::DT_QINT32) {
      Say("is MIN_FIRST with a float bias and a minimum that is not zero");
    }
    WeightRange();
  }

  void WeightRange() {
    const auto min = ScalarConstValue(Producer(kMinB));
    const auto max = ScalarConstValue(Producer(kMaxB));
    if (!min.ok() || !max.ok()) {
      Say("has a weight range that is no constant scalar");
    } else if (*min != -*max) {
      Say("has a weight range that is not symmetric");
    }
    const auto codes = ConstValue(Producer(kWeights));
    if (!codes.ok()) return Say("has weights that are no constant");
    const auto flat = codes->flat<tensorflow::qint8>();
    for (int64_t i = 0; i < flat.size(); ++i) {
      if (flat(i).value < -127) return Say("has a weight below -127");
    }
  }

  void WeightPairs() {
    const auto codes = ConstValue(Producer(kWeights));
    if (!codes.ok()) return Say("has weights that are no constant");
    const auto matrix = codes->matrix<tensorflow::qint8>();
    for (int64_t k = 0; k + 1 < matrix.dimension(0); k += 2) {
      for (int64_t j = 0; j < matrix.dimension(1); ++j) {
        const int sum = matrix(k, j).value + matrix(k + 1, j).value;
        if (std::abs(sum) > 128) {
          return Say(absl::StrCat("has a pair of weights that add up to ", sum,
                                  ", in row ", k));
        }
      }
    }
  }

  void Dequantize() {
    const std::string mode = Text("mode", "MIN_COMBINED");
    if (Type("T") == tensorflow::DT_QINT32 && mode == "SCALED") {
      Say("has no kernel for SCALED sums");
    }
    if (Type("T") == tensorflow::DT_QUINT8 && mode == "MIN_FIRST" &&
        !IsZero(node_->input(1))) {
      Say("rounds the zero point, which oneDNN's quantization does not");
    }
  }

  void OtherOp() {
    const std::string& op = node_->op();
    const DataType type = Type("T");
    if (((op == "Transpose" || op == "Tile" || op == "SelectV2") &&
         IsCode(type)) ||
        (op == "Split" && type == tensorflow::DT_QINT8)) {
      Say("has no kernel for codes");
    }
  }

  const GraphDef& graph_;
  std::map<std::string, const NodeDef*> nodes_;
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
