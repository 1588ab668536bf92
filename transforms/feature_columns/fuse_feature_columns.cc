#include "transforms/feature_columns/fuse_feature_columns.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "transforms/feature_columns/feature_column_report.h"
#include "transforms/feature_columns/feature_column_rewriter.h"
#include "transforms/feature_columns/feature_columns.h"
#include "transforms/feature_columns/fuse_columns.h"
#include "transforms/feature_columns/simplify_columns.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

bool IsNewPlaceholder(std::string_view name) {
  return name == kNumericPlaceholder || name == kCategoricalPlaceholder;
}

std::string Prefixed(std::string_view prefix, const std::string& input) {
  const TensorName name = ParseTensorName(input);
  if (IsNewPlaceholder(name.node)) return input;
  if (name.control()) return absl::StrCat("^", prefix, input.substr(1));
  return absl::StrCat(prefix, input);
}

void AddPrefix(std::string_view prefix, GraphDef* graph) {
  for (NodeDef& node : *graph->mutable_node()) {
    node.set_name(Prefixed(prefix, node.name()));
    for (std::string& input : *node.mutable_input()) {
      input = Prefixed(prefix, input);
    }
    const auto colocated = node.mutable_attr()->find("_class");
    if (colocated == node.mutable_attr()->end()) continue;
    constexpr std::string_view kLocation = "loc:@";
    for (std::string& place : *colocated->second.mutable_list()->mutable_s()) {
      if (!absl::StartsWith(place, kLocation)) continue;
      place = absl::StrCat(kLocation,
                           Prefixed(prefix, place.substr(kLocation.size())));
    }
  }
}

// Raw placeholders that the graph still needs.
void WarnOfRawInputs(const FeatureColumns& columns, const GraphIndex& index,
                     FeatureColumnReport* report) {
  std::set<std::string> names;
  for (const auto& column : columns.categorical) {
    for (const NodeDef* node : column.placeholders) names.insert(node->name());
  }
  for (const auto& column : columns.numeric) {
    names.insert(column.placeholder->name());
  }
  for (const std::string& name : names) {
    std::set<std::string> readers;
    for (const Use& use : index.Uses(name)) readers.insert(use.node->name());
    if (readers.empty()) continue;
    report->warnings.push_back(
        absl::StrCat("the placeholder \"", name,
                     "\" is still needed, because \"", *readers.begin(),
                     "\" reads it and is part of no column that was fused"));
  }
}

absl::Status Rewrite(const FeatureColumnOptions& options,
                     const FeatureColumns& columns, GraphIndex* index,
                     FeatureColumnReport* report) {
  FeatureColumnRewriter rewriter(index, options.outputs);
  report->notes = DescribeColumns(columns, options.fuse);
  if (!options.fuse) return SimplifyColumns(columns, &rewriter);
  REQUANT_ASSIGN_OR_RETURN(const std::vector<StackedTable> tables,
                           FuseColumns(columns, &rewriter));
  for (std::string& line : DescribeFusion(columns, tables)) {
    report->notes.push_back(std::move(line));
  }
  WarnOfRawInputs(columns, *index, report);
  return absl::OkStatus();
}

absl::Status Run(TransformContext& context, GraphDef* graph) {
  FeatureColumnOptions options;
  options.fuse = context.parameters.Bool("fuse");
  options.prefix = context.parameters.String("prefix");
  options.outputs = context.outputs;
  REQUANT_ASSIGN_OR_RETURN(FeatureColumnReport report,
                           FuseFeatureColumns(options, graph));
  context.notes = std::move(report.notes);
  context.warnings = std::move(report.warnings);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FeatureColumnReport> FuseFeatureColumns(
    const FeatureColumnOptions& options, GraphDef* graph) {
  FeatureColumnReport report;
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  for (const char* name : {kNumericPlaceholder, kCategoricalPlaceholder}) {
    report.was_fused |= index.Find(name) != nullptr;
  }
  if (report.was_fused) {
    report.notes.push_back("the feature columns are fused already");
    return report;
  }
  const FeatureColumns columns = FindFeatureColumns(index);
  for (const LeftColumn& left : columns.left) {
    report.warnings.push_back(
        absl::StrCat("leaves \"", left.node, "\": ", left.reason));
  }
  if (columns.empty()) {
    report.notes.push_back("no feature column found");
    return report;
  }
  REQUANT_RETURN_IF_ERROR(Rewrite(options, columns, &index, &report));
  index.Commit();
  if (!options.prefix.empty()) AddPrefix(options.prefix, graph);
  report.changed = true;
  return report;
}

REQUANT_REGISTER_TRANSFORM(
    Run,
    {"fuse_feature_columns",
     "Replaces the feature columns of an estimator by direct table lookups.",
     "Finds categorical columns (hashed, from a vocabulary, identity, "
     "bucketized, crossed, with shared embeddings) that are read as embeddings "
     "or as linear weights, and numeric columns that are shifted and scaled, "
     "by "
     "what their nodes compute, not by their names; there must be one value "
     "per record. With fuse=true, tables of one size become one constant that "
     "a "
     "GatherNd reads, and the raw placeholders give way to "
     "new_numeric_placeholder (normalised numbers) and "
     "new_categorical_placeholder (pairs of column and bucket); the order of "
     "the columns is that in which the graph joins them and is printed, with "
     "the constants of the normalisation. With fuse=false each column becomes "
     "one GatherV2 after its raw placeholder. What is not recognised stays "
     "and is reported. Running it again changes nothing.",
     {{"fuse", ParameterType::kBool,
       "Stack the tables and take preprocessed records.", "true"},
      {"prefix", ParameterType::kString,
       "Put this before the name of every node but the new placeholders, as "
       "import/ in the published recipe."}},
     "variables frozen into constants"});

}  // namespace requant
