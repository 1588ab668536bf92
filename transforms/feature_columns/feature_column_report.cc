#include "transforms/feature_columns/feature_column_report.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/const_node.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

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

// The value that stands for a missing one, as people write it.
std::string DescribeMissing(const CategoricalColumn& column) {
  const auto value = ConstValue(*column.missing_constant);
  if (!value.ok() || value->NumElements() != 1) {
    return absl::StrCat("\"", column.missing_constant->name(), "\"");
  }
  if (value->dtype() != tensorflow::DT_STRING) return value->SummarizeValue(1);
  return absl::StrCat("\"", std::string(value->flat<tensorflow::tstring>()(0)),
                      "\"");
}

}  // namespace

std::string DescribeNormalisation(const NumericColumn& column) {
  std::string text = "x";
  for (const NormalisationStep& step : column.steps) {
    if (text != "x") text = absl::StrCat("(", text, ")");
    // Nine digits tell any two floats apart.
    text = absl::StrFormat("%s %s %.9g", text, step.op, step.value);
  }
  return text;
}

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

std::vector<std::string> DescribeFusion(
    const FeatureColumns& columns, const std::vector<StackedTable>& tables) {
  std::vector<std::string> lines;
  for (const StackedTable& table : tables) {
    lines.push_back(absl::StrCat(
        "stacks ", table.tables, " table", table.tables == 1 ? "" : "s",
        " of [", table.rows, ",", table.width, "] in \"", table.node, "\""));
  }
  if (!columns.categorical.empty()) {
    std::set<std::string> missing;
    for (const CategoricalColumn& column : columns.categorical) {
      if (column.missing_constant == nullptr) continue;
      missing.insert(DescribeMissing(column));
    }
    lines.push_back(absl::StrCat("\"", kCategoricalPlaceholder, "\" takes ",
                                 columns.categorical.size(),
                                 " pairs (column, id) per record in the order "
                                 "above"));
    if (!missing.empty()) {
      absl::StrAppend(
          &lines.back(), "; it has no pair for ",
          absl::StrJoin(missing, " and "),
          " and other values without an id, which the original graph takes for "
          "missing and gives zeros");
    }
  }
  if (!columns.numeric.empty()) {
    lines.push_back(absl::StrCat("\"", kNumericPlaceholder,
                                 "\" takes numbers that are normalised as "
                                 "above, in that order"));
  }
  return lines;
}

}  // namespace requant
