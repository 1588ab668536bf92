#include "transforms/layers/coverage.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "transforms/layers/plain_product.h"
#include "transforms/layers/tensor_pattern.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using tensorflow::TensorShape;

constexpr char kInLoops[] = "in loops (While)";
constexpr char kUnderConditions[] = "under conditions (If)";
constexpr char kInFunctions[] = "in functions";
constexpr char kLeft[] = "it is left as it was";

bool IsConvolution(const std::string& op) {
  for (const std::string_view prefix : {"Conv2D", "Conv3D", "DepthwiseConv",
                                        "_FusedConv", "_FusedDepthwiseConv"}) {
    if (absl::StartsWith(op, prefix)) return true;
  }
  return op == "Conv";
}

// An Einsum of one tensor only reorders or sums.
bool IsMatrixProduct(const NodeDef& node) {
  return node.op() == "MatMul" ||
         (IsOtherProduct(node) &&
          (node.op() != "Einsum" || DataInputs(node) > 1));
}

CountedProduct::Kind KindOfProduct(const NodeDef& node) {
  if (node.op() == "Einsum") return CountedProduct::kEinsum;
  if (absl::StrContains(node.op(), "Depthwise")) {
    return CountedProduct::kDepthwise;
  }
  return IsConvolution(node.op()) ? CountedProduct::kConvolution
                                  : CountedProduct::kMatrices;
}

// Returns the shape of a Const without reading its values.
std::optional<TensorShape> ShapeOfConst(const NodeDef& node) {
  const auto value = node.attr().find("value");
  TensorShape shape;
  if (node.op() != "Const" || value == node.attr().end() ||
      !TensorShape::BuildTensorShape(value->second.tensor().tensor_shape(),
                                     &shape)
           .ok()) {
    return std::nullopt;
  }
  return shape;
}

// Counts the products of functions, each function once.
class FunctionProducts {
 public:
  explicit FunctionProducts(const tensorflow::GraphDef& graph) {
    for (const FunctionDef& function : graph.library().function()) {
      functions_.emplace(function.signature().name(), &function);
    }
  }

  // Adds the products of the functions that `node` calls, and that these call.
  // `place` is where the node is, or "".
  void AddCalledBy(const NodeDef& node, const std::string& place,
                   std::vector<CountedProduct>* products) {
    std::deque<std::pair<const FunctionDef*, std::string>> open;
    AddCalls(node, place, &open);
    for (; !open.empty(); open.pop_front()) {
      const auto [function, where] = open.front();
      for (const NodeDef& inner : function->node_def()) {
        AddCalls(inner, where, &open);
        if (!IsMatrixProduct(inner) && !IsConvolution(inner.op())) continue;
        CountedProduct product;
        product.name =
            absl::StrCat(function->signature().name(), "/", inner.name());
        product.op = inner.op();
        product.kind = KindOfProduct(inner);
        product.in_float = where;
        products->push_back(std::move(product));
      }
    }
  }

 private:
  void AddCalls(const NodeDef& node, const std::string& place,
                std::deque<std::pair<const FunctionDef*, std::string>>* open) {
    std::string where = place;
    if (where.empty()) {
      where =
          absl::EndsWith(node.op(), "While") ? kInLoops
          : absl::EndsWith(node.op(), "If") || absl::EndsWith(node.op(), "Case")
              ? kUnderConditions
              : kInFunctions;
    }
    std::vector<std::string> names = {node.op()};
    // Protobuf maps are unordered.
    std::map<std::string, const tensorflow::AttrValue*> attributes;
    for (const auto& [name, value] : node.attr()) attributes[name] = &value;
    for (const auto& [name, value] : attributes) {
      if (value->has_func()) names.push_back(value->func().name());
      for (const auto& function : value->list().func()) {
        names.push_back(function.name());
      }
    }
    for (const std::string& name : names) {
      const auto found = functions_.find(name);
      if (found == functions_.end() || !seen_.insert(name).second) continue;
      open->emplace_back(found->second, where);
    }
  }

  absl::flat_hash_map<std::string, const FunctionDef*> functions_;
  absl::flat_hash_set<std::string> seen_;
};

// Returns the nodes that the outputs depend on; all if no output is known.
absl::flat_hash_set<const NodeDef*> NeededNodes(
    const GraphIndex& index, const std::vector<std::string>& outputs) {
  std::vector<const NodeDef*> open;
  absl::flat_hash_set<const NodeDef*> needed;
  const auto add = [&](const NodeDef* node) {
    if (node != nullptr && needed.insert(node).second) open.push_back(node);
  };
  for (const std::string& output : outputs) {
    add(index.Find(ParseTensorName(output).node));
  }
  if (open.empty()) {
    for (const NodeDef& node : index.graph().node()) needed.insert(&node);
  }
  while (!open.empty()) {
    const NodeDef& node = *open.back();
    open.pop_back();
    for (int i = 0; i < node.input_size(); ++i) add(index.Producer(node, i));
  }
  return needed;
}

// Sets `place` for nodes from those of the op `first` up to those of an op that
// ends it.
void MarkPlaces(const GraphIndex& index, const std::string& first,
                const absl::flat_hash_set<std::string>& ends,
                const std::string& place,
                absl::flat_hash_map<const NodeDef*, std::string>* places) {
  std::vector<const NodeDef*> open;
  for (const NodeDef& node : index.graph().node()) {
    if (node.op() == first) open.push_back(&node);
  }
  while (!open.empty()) {
    const NodeDef& node = *open.back();
    open.pop_back();
    if (!places->emplace(&node, place).second) continue;
    for (const Use& use : index.Uses(node.name())) {
      if (!ends.contains(use.node->op())) open.push_back(use.node);
    }
  }
}

std::string ReasonOf(const GraphIndex& index, const FloatLayerOptions& options,
                     const NodeDef& node) {
  const auto& ops = options.excluded_ops;
  const auto& nodes = options.excluded_nodes;
  if (std::count(ops.begin(), ops.end(), node.op()) > 0 ||
      std::count(nodes.begin(), nodes.end(), node.name()) > 0) {
    return "it is excluded";
  }
  PlainProduct product;
  return ReadPlainProduct(index, index.Find(node.name()), &product)
      .value_or(kLeft);
}

ProductOperand OperandAt(const GraphIndex& index, const NodeDef& node,
                         int input, const std::string& type) {
  ProductOperand operand;
  operand.type = TypeAttribute(node, type, tensorflow::DT_FLOAT);
  const NodeOutput source = TensorSource(index, node, input);
  if (source.node == nullptr) return operand;
  operand.tensor = absl::StrCat(source.node->name(), ":", source.port);
  operand.shape = ShapeOfConst(*source.node);
  return operand;
}

void AddOperands(const GraphIndex& index, const NodeDef& node,
                 CountedProduct* product) {
  const bool is_v3 = node.op() == "BatchMatMulV3";
  const int inputs = DataInputs(node);
  if (!product->is_convolution()) {
    if (inputs < 2 || (node.op() == "Einsum" && inputs > 2)) return;
    product->operands = {OperandAt(index, node, 0, is_v3 ? "Ta" : "T"),
                         OperandAt(index, node, 1, is_v3 ? "Tb" : "T")};
    product->first_transposed =
        BoolAttribute(node, "adj_x") || BoolAttribute(node, "transpose_a");
    product->equation = StringAttribute(node, "equation");
  } else if (absl::StrContains(node.op(), "BackpropInput")) {
    if (inputs < 3) return;
    product->operands = {OperandAt(index, node, 1, "T"),
                         OperandAt(index, node, 2, "T")};
  } else if (!absl::StrContains(node.op(), "Backprop") && inputs >= 2) {
    product->operands = {
        OperandAt(index, node, 1, "T"),
        {absl::StrCat(node.name(), ":0"),
         TypeAttribute(node, "T", tensorflow::DT_FLOAT), std::nullopt}};
  }
}

// Returns the multiply-adds of a product of matrices, or of many.
std::optional<double> WorkOfMatrices(const TensorShape& a, const TensorShape& b,
                                     bool transposed) {
  const int rank = std::max(a.dims(), b.dims());
  if (a.dims() < 2 || b.dims() < 2) return std::nullopt;
  const auto size = [](const TensorShape& shape, int from_end) -> double {
    return from_end > shape.dims() ? 1
                                   : shape.dim_size(shape.dims() - from_end);
  };
  const double depth = size(a, transposed ? 2 : 1);
  double work = size(a, 1) * size(a, 2);
  work *= depth == 0 ? 0 : size(b, 1) * size(b, 2) / depth;
  for (int i = 3; i <= rank; ++i) work *= std::max(size(a, i), size(b, i));
  return work;
}

// Sets the size of each label of one factor; that of the dimensions that "..."
// stands for is their product.
bool AddSizes(std::string_view labels, const TensorShape& shape,
              std::map<char, double>* sizes) {
  const bool has_ellipsis = absl::StrContains(labels, '.');
  const int others = shape.dims() - static_cast<int>(labels.size());
  if (has_ellipsis ? others < -1 : others != 0) return false;
  int dimension = 0;
  for (const char label : labels) {
    double size = 1;
    for (int i = 0; i < (label == '.' ? others + 1 : 1); ++i) {
      size *= static_cast<double>(shape.dim_size(dimension++));
    }
    double& known = (*sizes)[label];
    known = std::max(known, size);
  }
  return true;
}

std::optional<double> WorkOfEinsum(std::string equation, const TensorShape& a,
                                   const TensorShape& b) {
  equation = absl::StrReplaceAll(equation, {{" ", ""}, {"...", "."}});
  const std::vector<std::string> factors = absl::StrSplit(
      std::string_view(equation).substr(0, equation.find("->")), ',');
  std::map<char, double> sizes;
  if (factors.size() != 2 || !AddSizes(factors[0], a, &sizes) ||
      !AddSizes(factors[1], b, &sizes)) {
    return std::nullopt;
  }
  double work = 1;
  for (const auto& [label, size] : sizes) work *= size;
  return work;
}

// Returns the multiply-adds of a convolution: each number of the result, or of
// the gradient, meets one channel's part of the filter.
std::optional<double> WorkOfConvolution(const CountedProduct& product,
                                        const TensorShape& filter,
                                        const TensorShape& result) {
  const int rank = filter.dims();
  if (rank < 3) return std::nullopt;
  double channels = static_cast<double>(filter.dim_size(rank - 1));
  if (product.kind == CountedProduct::kDepthwise) {
    channels *= static_cast<double>(filter.dim_size(rank - 2));
  }
  return channels == 0
             ? 0
             : static_cast<double>(result.num_elements()) *
                   static_cast<double>(filter.num_elements()) / channels;
}

// Returns the multiply-adds for one record if all shapes are known; `seen` is
// where those of operands without a shape are.
std::optional<double> WorkOf(const CountedProduct& product,
                             const SeenShapes& seen) {
  if (product.operands.size() != 2 || seen.records == 0) return std::nullopt;
  const TensorShape* shapes[2];
  for (int i = 0; i < 2; ++i) {
    const ProductOperand& operand = product.operands[i];
    const auto found = seen.shapes.find(operand.tensor);
    if (!operand.shape && found == seen.shapes.end()) return std::nullopt;
    shapes[i] = operand.shape ? &*operand.shape : &found->second;
  }
  const std::optional<double> work =
      product.is_convolution()
          ? WorkOfConvolution(product, *shapes[0], *shapes[1])
      : product.kind == CountedProduct::kEinsum
          ? WorkOfEinsum(product.equation, *shapes[0], *shapes[1])
          : WorkOfMatrices(*shapes[0], *shapes[1], product.first_transposed);
  if (!work) return std::nullopt;
  return *work / static_cast<double>(seen.records);
}

// Returns "16 %"; never claims all or nothing of what is not.
std::string Percent(double share) {
  if (share <= 0) return "0 %";
  if (share >= 1) return "100 %";
  const int rounded = static_cast<int>(std::lround(100 * share));
  if (rounded == 0) return "less than 1 %";
  return absl::StrCat(std::min(rounded, 99), " %");
}

// Returns the phrase for products that have this CountedProduct::in_float.
std::string GroupOf(const std::string& in_float) {
  if (in_float == "it multiplies two activations") {
    return "of two activations, as in attention";
  }
  if (in_float == "it is excluded") return "excluded";
  if (in_float == kLeft) return "left as they were";
  return absl::StartsWith(in_float, "in ") ||
                 absl::StartsWith(in_float, "under ")
             ? in_float
             : absl::StrCat("because ", in_float);
}

// The products that one phrase is about.
struct Group {
  std::string phrase;
  int count = 0;
  int unknown = 0;
  double work = 0;

  void Add(const CountedProduct& product) {
    ++count;
    unknown += !product.work.has_value();
    work += product.work.value_or(0);
  }

  // Returns what part of `all` work they are: " (16 %)".
  std::string Share(double all) const {
    if (all == 0) return "";
    if (unknown == 0) return absl::StrCat(" (", Percent(work / all), ")");
    if (unknown == count) return " (unknown work)";
    return absl::StrCat(" (", Percent(work / all), ", and ", unknown,
                        " of unknown work)");
  }
};

}  // namespace

std::vector<CountedProduct> CountProducts(const GraphIndex& index,
                                          const FloatLayers& found,
                                          const FloatLayerOptions& options) {
  absl::flat_hash_map<std::string, std::string> reasons;
  for (const FloatLayer& layer : found.layers) {
    reasons[layer.matmul->name()] = "";
  }
  for (const SkippedMatMul& skipped : found.skipped) {
    reasons[skipped.name] = skipped.reason;
  }
  absl::flat_hash_map<const NodeDef*, std::string> places;
  MarkPlaces(index, "Enter", {"Exit"}, kInLoops, &places);
  MarkPlaces(index, "Switch", {"Merge", "Exit"}, kUnderConditions, &places);
  const auto needed = NeededNodes(index, options.outputs);
  FunctionProducts functions(index.graph());
  std::vector<CountedProduct> products;
  for (const NodeDef& node : index.graph().node()) {
    if (!needed.contains(&node)) continue;
    const auto place = places.find(&node);
    const std::string where = place == places.end() ? "" : place->second;
    functions.AddCalledBy(node, where, &products);
    if (!IsMatrixProduct(node) && !IsConvolution(node.op())) continue;
    CountedProduct product;
    product.name = node.name();
    product.op = node.op();
    product.kind = KindOfProduct(node);
    const auto reason = reasons.find(node.name());
    if (product.is_convolution()) {
      product.in_float = "it is a convolution";
    } else {
      product.in_float = reason != reasons.end()
                             ? reason->second
                             : ReasonOf(index, options, node);
    }
    if (where.empty()) {
      AddOperands(index, node, &product);
    } else if (!product.in_float.empty()) {
      product.in_float = where;
    }
    products.push_back(std::move(product));
  }
  return products;
}

std::vector<ProductOperand> UnknownOperands(
    const std::vector<CountedProduct>& products) {
  std::vector<ProductOperand> operands;
  absl::flat_hash_set<std::string> known;
  for (const CountedProduct& product : products) {
    if (product.in_float.empty()) continue;
    for (const ProductOperand& operand : product.operands) {
      if (operand.shape || operand.tensor.empty() ||
          !known.insert(operand.tensor).second) {
        continue;
      }
      operands.push_back(operand);
    }
  }
  return operands;
}

void SetWork(const SeenShapes& inputs, const SeenShapes& operands,
             std::vector<CountedProduct>* products) {
  for (CountedProduct& product : *products) {
    product.work =
        WorkOf(product, product.in_float.empty() ? inputs : operands);
  }
}

void MarkLeftInFloat(const tensorflow::GraphDef& quantized,
                     std::vector<CountedProduct>* products) {
  absl::flat_hash_map<std::string_view, std::string_view> ops;
  for (const NodeDef& node : quantized.node()) ops[node.name()] = node.op();
  for (CountedProduct& product : *products) {
    const auto left = ops.find(product.name);
    if (product.in_float.empty() && left != ops.end() &&
        left->second == product.op) {
      product.in_float = kLeft;
    }
  }
}

std::string CoverageText(const std::vector<CountedProduct>& products) {
  Group all, matrices, coded, convolutions;
  std::vector<Group> groups;
  for (const CountedProduct& product : products) {
    all.Add(product);
    if (product.is_convolution()) {
      convolutions.Add(product);
      continue;
    }
    matrices.Add(product);
    if (product.in_float.empty()) {
      coded.Add(product);
      continue;
    }
    const std::string phrase = GroupOf(product.in_float);
    auto group = std::find_if(
        groups.begin(), groups.end(),
        [&](const Group& other) { return other.phrase == phrase; });
    if (group == groups.end()) {
      groups.emplace_back().phrase = phrase;
      group = groups.end() - 1;
    }
    group->Add(product);
  }
  const std::string share = Percent(all.work > 0 ? coded.work / all.work : 0);
  const std::string count =
      absl::StrCat(coded.count, " of ", matrices.count, " matrix products");
  // A share of what can be counted says little where the rest is in a loop.
  std::string text =
      matrices.count == 0 ? "no matrix products"
      : all.work == 0 || (all.unknown > 0 && groups.empty())
          ? count + " run in int8"
      : all.unknown > 0
          ? absl::StrCat(count, " run in int8, ", share,
                         " of the multiply-adds that can be counted")
          : absl::StrCat(share, " of the multiply-adds run in int8: ", count);
  std::vector<std::string> parts;
  for (const Group& group : groups) {
    parts.push_back(
        absl::StrCat(group.count, " ", group.phrase, group.Share(all.work)));
  }
  if (!parts.empty()) {
    absl::StrAppend(&text, "; float: ", absl::StrJoin(parts, ", "));
  }
  absl::StrAppend(&text, "; convolutions: ");
  if (convolutions.count == 0) return text + "none";
  return absl::StrCat(text, convolutions.count, ", all in float",
                      convolutions.Share(all.work));
}

}  // namespace requant
