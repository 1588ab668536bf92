#include "transforms/preparation/prepare_graph.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/program/isolation.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "graph/summary/output_ranking.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/eightbit/expose_matmuls.h"
#include "transforms/preparation/fold_weights.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

absl::Status Change(const FloatLayerOptions& options,
                    const GetRegistry& registry, GraphDef* graph,
                    PreparedGraph* prepared) {
  std::vector<ComputedFactor> factors;
  {
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
    factors = FindComputedFactors(index, options);
  }
  if (!factors.empty()) {
    REQUANT_ASSIGN_OR_RETURN(const TransformRegistry* transforms, registry());
    SetActivity("computing weights that depend on constants only");
    REQUANT_RETURN_IF_ERROR(FoldFactors(*transforms, factors, graph));
  }
  for (const ComputedFactor& factor : factors) {
    prepared->folded.push_back(factor.product);
  }
  SetActivity("looking for products");
  REQUANT_ASSIGN_OR_RETURN(const int exposed, ExposeMatMuls(options, graph));
  prepared->changed = exposed > 0 || !factors.empty();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PreparedGraph> PrepareGraph(const FloatLayerOptions& options,
                                           bool may_change,
                                           const GetRegistry& registry,
                                           GraphDef* graph) {
  PreparedGraph prepared;
  {
    REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
    // The transform that quantizes also warns.
    std::vector<std::string> warnings;
    REQUANT_RETURN_IF_ERROR(CheckExcluded(options, index, &warnings));
  }
  if (may_change) {
    REQUANT_RETURN_IF_ERROR(Change(options, registry, graph, &prepared));
  }
  REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
  const FloatLayers found = FindFloatLayers(index, options);
  prepared.products = CountProducts(index, found, options);
  if (!found.layers.empty()) return prepared;
  prepared.nothing = WhyNoLayers(*graph, found);
  if (absl::c_any_of(graph->node(), [](const NodeDef& node) {
        return IsVariableOp(node.op());
      })) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is nothing to quantize: ", prepared.nothing));
  }
  return prepared;
}

absl::StatusOr<std::vector<std::string>> LayersWithoutRanges(
    const PreparedGraph* prepared, const FloatLayerOptions& options,
    const RangeTable& ranges, GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(const GraphIndex index, GraphIndex::Create(graph));
  const auto knows = [&](const std::string& tensor) {
    const TensorName name = ParseTensorName(tensor);
    return ranges.Find(name.node, name.port) != nullptr;
  };
  std::vector<std::string> names;
  for (const FloatLayer& layer : FindFloatLayers(index, options).layers) {
    const std::string& name = layer.matmul->name();
    const bool counts = prepared == nullptr ||
                        layer.matmul->attr().contains(kExposedAttribute) ||
                        absl::c_linear_search(prepared->folded, name);
    if (counts && !(knows(layer.input) && knows(layer.output))) {
      names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> ExposedInVain(const GraphDef& quantized) {
  std::vector<std::string> names;
  for (const NodeDef& node : quantized.node()) {
    const auto exposed = node.attr().find(kExposedAttribute);
    if (node.op() == "MatMul" && exposed != node.attr().end()) {
      names.push_back(exposed->second.s());
    }
  }
  return names;
}

}  // namespace requant
