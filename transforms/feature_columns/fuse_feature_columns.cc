#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "transforms/feature_columns/feature_columns.h"
#include "transforms/transform.h"

namespace requant {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;

// Returns the table with a row of zeros prepended.
absl::StatusOr<Tensor> WithZeroRow(const NodeDef& table) {
  REQUANT_ASSIGN_OR_RETURN(const Tensor value, ConstValue(table));
  Tensor extended(value.dtype(), tensorflow::TensorShape({value.dim_size(0) + 1,
                                                          value.dim_size(1)}));
  const auto from = value.tensor_data();
  char* to = const_cast<char*>(extended.tensor_data().data());
  const size_t row = extended.tensor_data().size() - from.size();
  std::memset(to, 0, row);
  std::memcpy(to + row, from.data(), from.size());
  return extended;
}

class Simplifier {
 public:
  Simplifier(const FeatureColumns& columns, FeatureColumnRewriter* rewriter)
      : columns_(columns), rewriter_(*rewriter) {}

  absl::Status Simplify(const TableLookup& lookup) {
    const std::string base = lookup.root->name();
    const std::string row = RowOf(lookup.column);
    REQUANT_ASSIGN_OR_RETURN(const Tensor value, WithZeroRow(*lookup.table));
    const std::string table =
        rewriter_.AddConst(base + "/zeros_and_rows", value);
    const std::string axis =
        rewriter_.AddConst(base + "/gather/axis", Tensor(int32_t{0}));
    const std::string gather =
        rewriter_.AddNode(base + "/gather", "GatherV2", {table, row, axis},
                          {{"Tparams", lookup.type},
                           {"Tindices", tensorflow::DT_INT64},
                           {"Taxis", tensorflow::DT_INT32}});
    rewriter_.Replace(lookup, gather);
    return absl::OkStatus();
  }

  void Simplify(const NumericRead& read) {
    const std::string before(
        ParseTensorName(read.reader->input(read.input)).node);
    rewriter_.index().SetInput(
        read.reader, read.input,
        FormatTensorName(read.value.node->name(), read.value.port));
    rewriter_.RemoveUnread(before);
  }

 private:
  // Returns the prefix for the names of a column's new nodes.
  static std::string BaseOf(const CategoricalColumn& column) {
    std::string name;
    for (const NodeDef* placeholder : column.placeholders) {
      absl::StrAppend(&name, placeholder->name(), "_");
    }
    return name + "column";
  }

  // Adds the nodes that apply the column's rule to `values`.
  std::string AddIds(const CategoricalColumn& column,
                     const std::string& values) {
    std::map<std::string, std::string> copies = {
        {column.values->name(), values}};
    for (const NodeDef* step : column.steps) {
      NodeDef copy = *step;
      copy.set_name(absl::StrCat(BaseOf(column), "/", step->op()));
      for (std::string& input : *copy.mutable_input()) {
        const TensorName name = ParseTensorName(input);
        const auto copied = copies.find(std::string(name.node));
        if (copied != copies.end()) {
          input = FormatTensorName(copied->second, name.port);
        }
      }
      copies[step->name()] = rewriter_.Add(std::move(copy));
    }
    return copies[column.ids.node->name()];
  }

  // Adds a node that says whether each record has a row at all.
  std::string AddHasRow(const CategoricalColumn& column,
                        const std::string& values, const std::string& ids) {
    const std::string base = BaseOf(column);
    const auto type = column.placeholders[0]->attr().at("dtype").type();
    std::string present = rewriter_.AddNode(
        base + "/is_present", "NotEqual",
        {values,
         FormatTensorName(column.missing.node->name(), column.missing.port)},
        {{"T", type}});
    if (column.hashes) return present;
    const std::string zero =
        rewriter_.AddConst(base + "/zero", Tensor(int64_t{0}));
    const std::string is_id =
        rewriter_.AddNode(base + "/is_id", "GreaterEqual", {ids, zero},
                          {{"T", tensorflow::DT_INT64}});
    return rewriter_.AddNode(base + "/has_row", "LogicalAnd", {present, is_id},
                             {});
  }

  // Adds each record's id, and whether it has one; "" when all have one.
  std::pair<std::string, std::string> AddIdsAndHasRow(
      const CategoricalColumn& column) {
    const std::string base = BaseOf(column);
    if (column.values == nullptr) {
      std::string ids =
          FormatTensorName(column.ids.node->name(), column.ids.port);
      if (column.type != tensorflow::DT_INT64) {
        ids = rewriter_.AddNode(
            base + "/id", "Cast", {ids},
            {{"SrcT", column.type}, {"DstT", tensorflow::DT_INT64}});
      }
      return {ids, ""};
    }
    std::string values = column.placeholders[0]->name();
    if (column.has_second_dimension) {
      values = rewriter_.AddReshape(
          base + "/values", values, {-1},
          column.placeholders[0]->attr().at("dtype").type());
    }
    const std::string ids = AddIds(column, values);
    return {ids, AddHasRow(column, values, ids)};
  }

  // Returns the number of each record's row, counted from 1 because row 0 holds
  // the zeros. An id beyond the table stays beyond it.
  std::string RowOf(int number) {
    const auto known = rows_.find(number);
    if (known != rows_.end()) return known->second;
    const CategoricalColumn& column = columns_.categorical[number];
    const std::string base = BaseOf(column);
    const auto [ids, has_row] = AddIdsAndHasRow(column);
    const std::string one =
        rewriter_.AddConst(base + "/one", Tensor(int64_t{1}));
    std::string row =
        rewriter_.AddNode(base + "/id_and_one", "AddV2", {ids, one},
                          {{"T", tensorflow::DT_INT64}});
    if (!has_row.empty()) {
      const std::string none =
          rewriter_.AddConst(base + "/zeros_row", Tensor(int64_t{0}));
      row = rewriter_.AddNode(base + "/row", "SelectV2", {has_row, row, none},
                              {{"T", tensorflow::DT_INT64}});
    }
    return rows_[number] = row;
  }

  const FeatureColumns& columns_;
  FeatureColumnRewriter& rewriter_;
  std::map<int, std::string> rows_;
};

// Turns each lookup into one GatherV2, still fed by the raw placeholders, and
// removes Reshapes of numeric columns. The result is exact for every input:
// records with a missing value read a row of zeros that is added to the table.
absl::Status SimplifyColumns(const FeatureColumns& columns,
                             FeatureColumnRewriter* rewriter) {
  Simplifier simplifier(columns, rewriter);
  for (const TableLookup& lookup : columns.lookups) {
    REQUANT_RETURN_IF_ERROR(simplifier.Simplify(lookup));
  }
  for (const NumericRead& read : columns.numeric_reads) {
    simplifier.Simplify(read);
  }
  return absl::OkStatus();
}

std::string DescribeCategorical(const FeatureColumns& columns, int number) {
  const CategoricalColumn& column = columns.categorical[number];
  std::vector<std::string> tables;
  for (const TableLookup& lookup : columns.lookups) {
    if (lookup.column != number) continue;
    tables.push_back(absl::StrCat(lookup.table->name(), " [", lookup.rows, ",",
                                  lookup.width, "]"));
  }
  std::vector<std::string> inputs;
  for (const tensorflow::NodeDef* placeholder : column.placeholders) {
    inputs.push_back(absl::StrCat("\"", placeholder->name(), "\""));
  }
  return absl::StrCat(absl::StrJoin(inputs, " and "), ", ", column.description,
                      ", reads ", absl::StrJoin(tables, " and "));
}

// Returns the value that stands for a missing one, in readable form.
std::string DescribeMissing(const CategoricalColumn& column) {
  const auto value = ConstValue(*column.missing_constant);
  if (!value.ok() || value->NumElements() != 1) {
    return absl::StrCat("\"", column.missing_constant->name(), "\"");
  }
  if (value->dtype() != tensorflow::DT_STRING) return value->SummarizeValue(1);
  return absl::StrCat("\"", std::string(value->flat<tensorflow::tstring>()(0)),
                      "\"");
}

// Returns a formula such as "(x - 1) / 20", or "x" if there are no steps.
std::string DescribeNormalisation(const NumericColumn& column) {
  std::string text = "x";
  for (const auto& [sign, value] : column.steps) {
    if (text != "x") text = absl::StrCat("(", text, ")");
    // Nine digits distinguish any two floats.
    text = absl::StrFormat("%s %s %.9g", text, sign, value);
  }
  return text;
}

// Returns a line for each column. If fused, lines are numbered in the order of
// the columns in preprocessed records.
std::vector<std::string> DescribeColumns(const FeatureColumns& columns,
                                         bool fused) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < columns.categorical.size(); ++i) {
    lines.push_back(absl::StrCat("categorical column ",
                                 fused ? absl::StrCat(i, ": ") : "",
                                 DescribeCategorical(columns, i)));
  }
  int64_t first = 0;
  for (const NumericColumn& column : columns.numeric) {
    const int64_t last = first + column.width - 1;
    std::string place;
    if (fused) {
      place = last == first ? absl::StrCat(first, ": ")
                            : absl::StrCat(first, "-", last, ": ");
    }
    lines.push_back(absl::StrCat("numeric column ", place, "\"",
                                 column.placeholder->name(), "\", ",
                                 DescribeNormalisation(column)));
    first = last + 1;
  }
  return lines;
}

// Adds a description of what preprocessed records must look like.
void DescribeRecords(const FeatureColumns& columns,
                     std::vector<std::string>* lines) {
  if (!columns.categorical.empty()) {
    std::set<std::string> missing;
    for (const CategoricalColumn& column : columns.categorical) {
      if (column.missing_constant == nullptr) continue;
      missing.insert(DescribeMissing(column));
    }
    lines->push_back(absl::StrCat(
        "\"", kCategoricalPlaceholder, "\" takes ", columns.categorical.size(),
        " pairs (column, id) per record in the order above"));
    if (!missing.empty()) {
      absl::StrAppend(&lines->back(), "; it has no pair for ",
                      absl::StrJoin(missing, " and "),
                      " and other values without an id, which the original "
                      "graph takes for missing and gives zeros");
    }
  }
  if (!columns.numeric.empty()) {
    lines->push_back(absl::StrCat(
        "\"", kNumericPlaceholder,
        "\" takes numbers that are normalised as above, in that order"));
  }
}

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

// Warns of raw placeholders that the graph still needs.
void WarnOfRawInputs(const FeatureColumns& columns, const GraphIndex& index,
                     std::vector<std::string>* warnings) {
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
    warnings->push_back(
        absl::StrCat("the placeholder \"", name,
                     "\" is still needed, because \"", *readers.begin(),
                     "\" reads it and is part of no column that was fused"));
  }
}

absl::Status Run(TransformContext& context, GraphDef* graph) {
  return FuseFeatureColumns(context, graph).status();
}

}  // namespace

absl::StatusOr<bool> FuseFeatureColumns(TransformContext& context,
                                        GraphDef* graph) {
  REQUANT_ASSIGN_OR_RETURN(GraphIndex index, GraphIndex::Create(graph));
  for (const char* name : {kNumericPlaceholder, kCategoricalPlaceholder}) {
    if (index.Find(name) == nullptr) continue;
    context.notes.push_back("the feature columns are fused already");
    return false;
  }
  const FeatureColumns columns = FindFeatureColumns(index);
  std::vector<std::string> warnings = columns.left;
  std::vector<std::string> notes = {"no feature column found"};
  if (!columns.empty()) {
    const bool fuse = context.parameters.Bool("fuse");
    notes = DescribeColumns(columns, fuse);
    FeatureColumnRewriter rewriter(&index, context.outputs);
    if (fuse) {
      REQUANT_ASSIGN_OR_RETURN(const std::vector<std::string> stacked,
                               FuseColumns(columns, &rewriter));
      notes.insert(notes.end(), stacked.begin(), stacked.end());
      DescribeRecords(columns, &notes);
      WarnOfRawInputs(columns, index, &warnings);
    } else {
      REQUANT_RETURN_IF_ERROR(SimplifyColumns(columns, &rewriter));
    }
    index.Commit();
    const std::string prefix = context.parameters.String("prefix");
    if (!prefix.empty()) AddPrefix(prefix, graph);
  }
  context.notes = std::move(notes);
  context.warnings = std::move(warnings);
  return !columns.empty();
}

REQUANT_REGISTER_TRANSFORM(
    Run,
    {"fuse_feature_columns",
     "Replaces the feature columns of an estimator by direct table lookups.",
     "Finds categorical columns (hashed, from a vocabulary, identity, "
     "bucketized, crossed, with shared embeddings) that are read as embeddings "
     "or as linear weights, and numeric columns that are shifted and scaled, "
     "by what their nodes compute, not by their names; there must be one value "
     "per record. With fuse=true, tables of one size become one constant that "
     "a GatherNd reads, and the raw placeholders give way to "
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
