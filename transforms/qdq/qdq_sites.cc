#include "transforms/qdq/qdq_sites.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "graph/graph_body.h"
#include "graph/op_catalog.h"
#include "graph/tensorflow_library.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "transforms/qdq/weight_sources.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

// An op that multiplies two or more of its inputs.
struct MultiplyingOp {
  std::string_view name;
  // The first of them and how many they are; all from there on for -1.
  int first;
  int count;
};

constexpr MultiplyingOp kMultiplyingOps[] = {
    {"MatMul", 0, 2},
    {"BatchMatMul", 0, 2},
    {"BatchMatMulV2", 0, 2},
    {"BatchMatMulV3", 0, 2},
    {"Einsum", 0, -1},
    {"XlaEinsum", 0, 2},
    {"Conv", 0, 2},
    {"Conv2D", 0, 2},
    {"Conv3D", 0, 2},
    {"DepthwiseConv2dNative", 0, 2},
    // Transposed convolutions; their first input is a shape.
    {"Conv2DBackpropInput", 1, 2},
    {"Conv3DBackpropInputV2", 1, 2},
    {"_FusedMatMul", 0, 2},
    {"_FusedConv2D", 0, 2},
};

using ChosenOps = absl::flat_hash_map<std::string, MultiplyingOp>;

absl::StatusOr<ChosenOps> ChooseOps(const std::vector<std::string>& names) {
  ChosenOps chosen;
  for (const std::string& name : names.empty() ? DefaultQdqOps() : names) {
    const auto known =
        std::find_if(std::begin(kMultiplyingOps), std::end(kMultiplyingOps),
                     [&](const MultiplyingOp& op) { return op.name == name; });
    if (known == std::end(kMultiplyingOps)) {
      std::vector<std::string> all;
      for (const MultiplyingOp& op : kMultiplyingOps) all.emplace_back(op.name);
      return absl::InvalidArgumentError(
          absl::StrCat("inputs of the op \"", name, "\" cannot be quantized",
                       DidYouMean(name, all), "; those of ",
                       absl::StrJoin(all, ", "), " can"));
    }
    chosen.emplace(name, *known);
  }
  return chosen;
}

// Whether new names can be made of it.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name.find_first_of(":^") == std::string_view::npos;
}

// The types of all tensors that a node takes; nothing when they are not known
// or more than the node has inputs, of which each may be one tensor only.
std::optional<std::vector<tensorflow::DataType>> InputTypes(const NodeDef& node,
                                                            const OpEntry& op) {
  const int inputs = std::count_if(node.input().begin(), node.input().end(),
                                   [](const std::string& input) {
                                     return input.empty() || input[0] != '^';
                                   });
  std::vector<tensorflow::DataType> types;
  for (const auto& argument : op.definition->input_arg()) {
    const auto those = TypesOfArgument(argument, node, *op.definition);
    if (!those.has_value() ||
        those->count > inputs - static_cast<int64_t>(types.size())) {
      return std::nullopt;
    }
    for (int64_t i = 0; i < those->count; ++i) types.push_back(those->At(i));
  }
  if (static_cast<int>(types.size()) != inputs) return std::nullopt;
  return types;
}

class SiteFinder {
 public:
  SiteFinder(const GraphDef& graph, ChosenOps ops, QdqInputs inputs)
      : ops_(std::move(ops)),
        inputs_(inputs),
        catalog_(graph.library()),
        bodies_(MakeBodies(graph, &catalog_)),
        weights_(bodies_, graph.library()) {}

  QdqSites Find() {
    for (body_ = 0; body_ < static_cast<int>(bodies_.size()); ++body_) {
      const GraphBody::Nodes& nodes = bodies_[body_].nodes();
      for (int32_t i = 0; i < nodes.size(); ++i) {
        const auto op = ops_.find(nodes[i].op());
        if (op != ops_.end()) FindInNode(op->second, i);
      }
    }
    return std::move(found_);
  }

 private:
  static std::vector<GraphBody> MakeBodies(const GraphDef& graph,
                                           OpCatalog* catalog) {
    std::vector<GraphBody> bodies;
    bodies.reserve(1 + graph.library().function_size());
    bodies.emplace_back(graph, catalog);
    for (const auto& function : graph.library().function()) {
      bodies.emplace_back(function, catalog);
    }
    return bodies;
  }

  void FindInNode(const MultiplyingOp& multiplied, int32_t number) {
    const NodeDef& node = bodies_[body_].nodes()[number];
    const OpEntry* op = catalog_.Find(node.op());
    if (op == nullptr || op->registration == nullptr) {
      return Skip(node, "its op is not TensorFlow's");
    }
    if (!IsPlainName(node.name())) return Skip(node, "its name is damaged");
    const auto types = InputTypes(node, *op);
    if (!types.has_value()) {
      return Skip(node, "its inputs and attributes do not say what it takes");
    }
    const int size = types->size();
    // An Einsum of one tensor multiplies nothing.
    if (multiplied.count < 0 && size < 2) return;
    const int end = multiplied.count < 0
                        ? size
                        : std::min(size, multiplied.first + multiplied.count);
    for (int i = multiplied.first; i < end; ++i) {
      if ((*types)[i] == tensorflow::DT_FLOAT) FindAtInput(number, i);
    }
  }

  void FindAtInput(int32_t number, int input) {
    const GraphBody& body = bodies_[body_];
    const NodeDef& node = body.nodes()[number];
    const std::string& tensor = node.input(input);
    const BodyTensor source = body.Find(tensor);
    if (source.kind == BodyTensor::kUnknown ||
        !IsPlainName(body.NameOf(source))) {
      return Skip(node, absl::StrCat("its input \"", tensor,
                                     "\" is no known output of a node"));
    }
    const bool is_weight = weights_.IsWeight(body_, tensor);
    if (inputs_ != QdqInputs::kBoth &&
        is_weight != (inputs_ == QdqInputs::kWeights)) {
      return;
    }
    QdqSite site;
    if (source.kind == BodyTensor::kNode) {
      site.producer_op = body.nodes()[source.index].op();
    }
    if (site.producer_op == "Dequantize") {
      ++found_.already_quantized;
      return;
    }
    site.function = std::string(body.name());
    site.function_number = body_ - 1;
    site.reached = weights_.IsReached(body_);
    site.node = node.name();
    site.node_number = number;
    site.input = input;
    site.tensor = tensor;
    site.producer = body.NameOf(source);
    site.is_weight = is_weight;
    site.range = {RangeKeyName(site.function, site.producer), source.output};
    found_.sites.push_back(std::move(site));
  }

  void Skip(const NodeDef& node, std::string why) {
    found_.skipped.push_back(
        {std::string(bodies_[body_].name()), node.name(), std::move(why)});
  }

  const ChosenOps ops_;
  const QdqInputs inputs_;
  OpCatalog catalog_;
  const std::vector<GraphBody> bodies_;
  WeightSources weights_;
  int body_ = 0;
  QdqSites found_;
};

}  // namespace

absl::StatusOr<QdqInputs> ParseQdqInputs(std::string_view name) {
  if (name == "activations") return QdqInputs::kActivations;
  if (name == "weights") return QdqInputs::kWeights;
  if (name == "both") return QdqInputs::kBoth;
  return absl::InvalidArgumentError(absl::StrCat(
      "the inputs are activations, weights or both, not \"", name, "\""));
}

const std::vector<std::string>& DefaultQdqOps() {
  static const auto* ops = new std::vector<std::string>{
      "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"};
  return *ops;
}

absl::StatusOr<QdqSites> FindQdqSites(const GraphDef& graph,
                                      const QdqSiteOptions& options) {
  REQUANT_RETURN_IF_ERROR(LoadTensorFlow());
  REQUANT_ASSIGN_OR_RETURN(ChosenOps ops, ChooseOps(options.ops));
  return SiteFinder(graph, std::move(ops), options.inputs).Find();
}

std::string RangeKeyName(std::string_view function, std::string_view name) {
  if (function.empty()) return std::string(name);
  return absl::StrCat(function, "::", name);
}

}  // namespace requant
