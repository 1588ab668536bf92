#include "transforms/feature_columns/simplify_columns.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

// The table with a row of zeros before it.
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
    REQUANT_ASSIGN_OR_RETURN(const std::string row, RowOf(lookup.column));
    REQUANT_ASSIGN_OR_RETURN(const Tensor value, WithZeroRow(*lookup.table));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string table,
        rewriter_.AddConst(base + "/zeros_and_rows", value));
    REQUANT_ASSIGN_OR_RETURN(const std::string axis,
                             rewriter_.AddScalar(base + "/gather/axis", 0));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string gather,
        rewriter_.AddNode(base + "/gather", "GatherV2", {table, row, axis},
                          {{"Tparams", lookup.type},
                           {"Tindices", tensorflow::DT_INT64},
                           {"Taxis", tensorflow::DT_INT32}}));
    return rewriter_.Replace(lookup, gather);
  }

  absl::Status Simplify(const NumericRead& read) {
    const std::string before(
        ParseTensorName(read.reader->input(read.input)).node);
    rewriter_.index().SetInput(
        read.reader, read.input,
        FormatTensorName(read.value.node->name(), read.value.port));
    return rewriter_.RemoveUnread(before);
  }

 private:
  // What the parts of a column's graph are named after.
  static std::string BaseOf(const CategoricalColumn& column) {
    std::string name;
    for (const NodeDef* placeholder : column.placeholders) {
      absl::StrAppend(&name, placeholder->name(), "_");
    }
    return name + "column";
  }

  // The column's rule applied to `values`.
  absl::StatusOr<std::string> AddIds(const CategoricalColumn& column,
                                     const std::string& values) {
    const IdRule& rule = column.rule;
    std::map<std::string, std::string> copies = {
        {rule.values.node->name(), values}};
    for (const NodeDef* step : rule.steps) {
      NodeDef copy = *step;
      copy.set_name(rewriter_.index().FreeName(
          absl::StrCat(BaseOf(column), "/", step->op())));
      for (std::string& input : *copy.mutable_input()) {
        const TensorName name = ParseTensorName(input);
        const auto copied = copies.find(std::string(name.node));
        if (copied != copies.end()) {
          input = FormatTensorName(copied->second, name.port);
        }
      }
      copies[step->name()] = copy.name();
      REQUANT_RETURN_IF_ERROR(rewriter_.index().Add(std::move(copy)).status());
    }
    return copies[rule.ids.node->name()];
  }

  // Whether each record has a row at all.
  absl::StatusOr<std::string> AddHasRow(const CategoricalColumn& column,
                                        const std::string& values,
                                        const std::string& ids) {
    const std::string base = BaseOf(column);
    const auto type = column.placeholders[0]->attr().at("dtype").type();
    REQUANT_ASSIGN_OR_RETURN(
        std::string present,
        rewriter_.AddNode(base + "/is_present", "NotEqual",
                          {values, FormatTensorName(column.missing.node->name(),
                                                    column.missing.port)},
                          {{"T", type}}));
    if (column.rule.hashes()) return present;
    REQUANT_ASSIGN_OR_RETURN(
        const std::string zero,
        rewriter_.AddConst(base + "/zero", Tensor(int64_t{0})));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string is_id,
        rewriter_.AddNode(base + "/is_id", "GreaterEqual", {ids, zero},
                          {{"T", tensorflow::DT_INT64}}));
    return rewriter_.AddNode(base + "/has_row", "LogicalAnd", {present, is_id},
                             {});
  }

  // The id that each record has, and whether it has one; "" when all have.
  absl::StatusOr<std::pair<std::string, std::string>> AddIdsAndHasRow(
      const CategoricalColumn& column) {
    const std::string base = BaseOf(column);
    if (column.ready_ids.node != nullptr) {
      std::string ids = FormatTensorName(column.ready_ids.node->name(),
                                         column.ready_ids.port);
      if (column.ready_type != tensorflow::DT_INT64) {
        REQUANT_ASSIGN_OR_RETURN(
            ids, rewriter_.AddNode(base + "/id", "Cast", {ids},
                                   {{"SrcT", column.ready_type},
                                    {"DstT", tensorflow::DT_INT64}}));
      }
      return std::make_pair(ids, std::string());
    }
    std::string values = column.placeholders[0]->name();
    if (column.has_second_dimension) {
      REQUANT_ASSIGN_OR_RETURN(
          values, rewriter_.AddReshape(
                      base + "/values", values, {-1},
                      column.placeholders[0]->attr().at("dtype").type()));
    }
    REQUANT_ASSIGN_OR_RETURN(const std::string ids, AddIds(column, values));
    REQUANT_ASSIGN_OR_RETURN(const std::string has_row,
                             AddHasRow(column, values, ids));
    return std::make_pair(ids, has_row);
  }

  // The number of each record's row, counted from 1; 0 is the row of zeros. So
  // an id beyond the table stays one.
  absl::StatusOr<std::string> RowOf(int number) {
    const auto known = rows_.find(number);
    if (known != rows_.end()) return known->second;
    const CategoricalColumn& column = columns_.categorical[number];
    const std::string base = BaseOf(column);
    REQUANT_ASSIGN_OR_RETURN(const auto ids_and_has_row,
                             AddIdsAndHasRow(column));
    const auto& [ids, has_row] = ids_and_has_row;
    REQUANT_ASSIGN_OR_RETURN(
        const std::string one,
        rewriter_.AddConst(base + "/one", Tensor(int64_t{1})));
    REQUANT_ASSIGN_OR_RETURN(
        std::string row,
        rewriter_.AddNode(base + "/id_and_one", "AddV2", {ids, one},
                          {{"T", tensorflow::DT_INT64}}));
    if (!has_row.empty()) {
      REQUANT_ASSIGN_OR_RETURN(
          const std::string none,
          rewriter_.AddConst(base + "/zeros_row", Tensor(int64_t{0})));
      REQUANT_ASSIGN_OR_RETURN(
          row,
          rewriter_.AddNode(base + "/row", "SelectV2", {has_row, row, none},
                            {{"T", tensorflow::DT_INT64}}));
    }
    return rows_[number] = row;
  }

  const FeatureColumns& columns_;
  FeatureColumnRewriter& rewriter_;
  std::map<int, std::string> rows_;
};

}  // namespace

absl::Status SimplifyColumns(const FeatureColumns& columns,
                             FeatureColumnRewriter* rewriter) {
  Simplifier simplifier(columns, rewriter);
  for (const TableLookup& lookup : columns.lookups) {
    REQUANT_RETURN_IF_ERROR(simplifier.Simplify(lookup));
  }
  for (const NumericRead& read : columns.numeric_reads) {
    REQUANT_RETURN_IF_ERROR(simplifier.Simplify(read));
  }
  return absl::OkStatus();
}

}  // namespace requant
