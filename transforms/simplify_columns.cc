#include "transforms/simplify_columns.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

using tensorflow::NodeDef;
using tensorflow::Tensor;

// The table with a row of zeros at its end.
absl::StatusOr<Tensor> WithZeroRow(const NodeDef& table) {
  REQUANT_ASSIGN_OR_RETURN(const Tensor value, ConstValue(table));
  Tensor extended(value.dtype(), tensorflow::TensorShape({value.dim_size(0) + 1,
                                                          value.dim_size(1)}));
  const auto from = value.tensor_data();
  char* to = const_cast<char*>(extended.tensor_data().data());
  std::memcpy(to, from.data(), from.size());
  std::memset(to + from.size(), 0, extended.tensor_data().size() - from.size());
  return extended;
}

class Simplifier {
 public:
  Simplifier(const FeatureColumns& columns, FeatureColumnRewriter* rewriter)
      : columns_(columns), rewriter_(*rewriter) {}

  absl::Status Simplify(const TableLookup& lookup) {
    const std::string base = lookup.root->name();
    REQUANT_ASSIGN_OR_RETURN(const std::string row, RowOf(lookup));
    REQUANT_ASSIGN_OR_RETURN(const Tensor value, WithZeroRow(*lookup.table));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string table,
        rewriter_.AddConst(base + "/rows_and_zeros", value));
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
    return column.placeholder->name() + "_column";
  }

  // The column's strings, one dimension; and their buckets.
  absl::StatusOr<std::pair<std::string, std::string>> ValuesAndBuckets(
      int number) {
    const auto known = buckets_.find(number);
    if (known != buckets_.end()) return known->second;
    const CategoricalColumn& column = columns_.categorical[number];
    std::string values = column.placeholder->name();
    if (column.has_second_dimension) {
      REQUANT_ASSIGN_OR_RETURN(
          values, rewriter_.AddReshape(BaseOf(column) + "/values", values, {-1},
                                       tensorflow::DT_STRING));
    }
    NodeDef hash = *column.hash;
    hash.set_name(rewriter_.index().FreeName(BaseOf(column) + "/bucket"));
    hash.clear_input();
    hash.add_input(values);
    REQUANT_ASSIGN_OR_RETURN(NodeDef * added,
                             rewriter_.index().Add(std::move(hash)));
    return buckets_[number] = {values, added->name()};
  }

  // The number of the table's row for each record.
  absl::StatusOr<std::string> RowOf(const TableLookup& lookup) {
    const std::pair<int, int64_t> key = {lookup.column, lookup.rows};
    const auto known = rows_.find(key);
    if (known != rows_.end()) return known->second;
    const CategoricalColumn& column = columns_.categorical[lookup.column];
    const std::string base = BaseOf(column);
    REQUANT_ASSIGN_OR_RETURN(const auto values_and_buckets,
                             ValuesAndBuckets(lookup.column));
    const auto& [values, buckets] = values_and_buckets;
    REQUANT_ASSIGN_OR_RETURN(
        const std::string missing,
        rewriter_.AddConst(base + "/missing",
                           Tensor(tensorflow::tstring(column.missing))));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string is_missing,
        rewriter_.AddNode(base + "/is_missing", "Equal", {values, missing},
                          {{"T", tensorflow::DT_STRING}}));
    REQUANT_ASSIGN_OR_RETURN(
        const std::string zeros,
        rewriter_.AddConst(base + "/zeros_row", Tensor(lookup.rows)));
    REQUANT_ASSIGN_OR_RETURN(const std::string row,
                             rewriter_.AddNode(base + "/row", "SelectV2",
                                               {is_missing, zeros, buckets},
                                               {{"T", tensorflow::DT_INT64}}));
    return rows_[key] = row;
  }

  const FeatureColumns& columns_;
  FeatureColumnRewriter& rewriter_;
  std::map<int, std::pair<std::string, std::string>> buckets_;
  std::map<std::pair<int, int64_t>, std::string> rows_;
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
