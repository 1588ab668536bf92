#include "runtime/datasets/formats/example_parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "runtime/datasets/formats/example_scanner.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/example/feature.pb.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;
using tensorflow::tstring;
using tensorflow::example::FastParseExampleConfig;

// The type of an Example's list that values of `dtype` are read from.
DataType StoredType(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_DOUBLE:
    case tensorflow::DT_HALF:
    case tensorflow::DT_BFLOAT16:
      return tensorflow::DT_FLOAT;
    case tensorflow::DT_STRING:
      return tensorflow::DT_STRING;
    default:
      return tensorflow::DT_INT64;
  }
}

// Calls `visit` with a null pointer of the C++ type of a `dtype` that is not a
// stored one.
template <typename Visitor>
auto VisitConvertedType(DataType dtype, Visitor visit) {
  switch (dtype) {
    case tensorflow::DT_DOUBLE:
      return visit(static_cast<double*>(nullptr));
    case tensorflow::DT_HALF:
      return visit(static_cast<Eigen::half*>(nullptr));
    case tensorflow::DT_BFLOAT16:
      return visit(static_cast<tensorflow::bfloat16*>(nullptr));
    case tensorflow::DT_INT8:
      return visit(static_cast<int8_t*>(nullptr));
    case tensorflow::DT_UINT8:
      return visit(static_cast<uint8_t*>(nullptr));
    case tensorflow::DT_BOOL:
      return visit(static_cast<bool*>(nullptr));
    default:
      return visit(static_cast<int32_t*>(nullptr));
  }
}

// Converts one record's values; false when an integer is out of range.
template <typename To>
bool ConvertRow(const void* stored, int64_t elements, To* to) {
  if constexpr (std::is_integral_v<To>) {
    const int64_t* const from = static_cast<const int64_t*>(stored);
    bool exact = true;
    for (int64_t i = 0; i < elements; ++i) {
      to[i] = static_cast<To>(from[i]);
      exact &= static_cast<int64_t>(to[i]) == from[i];
    }
    return exact;
  } else {
    const float* const from = static_cast<const float*>(stored);
    for (int64_t i = 0; i < elements; ++i) to[i] = static_cast<To>(from[i]);
    return true;
  }
}

// The rows of a feature as `column` declares them.
absl::StatusOr<Tensor> Convert(const Column& column, Tensor stored,
                               std::vector<std::string>* problems) {
  if (stored.dtype() == column.dtype) {
    tensorflow::TensorShape shape = column.shape;
    shape.InsertDim(0, problems->size());
    Tensor shaped;
    // Two columns of one feature may have different shapes of one size.
    if (shaped.CopyFrom(stored, shape)) return shaped;
    return absl::InternalError(
        absl::StrCat("feature \"", column.feature, "\" has changed its size"));
  }
  REQUANT_ASSIGN_OR_RETURN(Tensor rows, AllocateRows(column, problems->size()));
  VisitConvertedType(column.dtype, [&](auto* type) {
    const char* from = static_cast<const char*>(stored.data());
    auto* to = static_cast<decltype(type)>(rows.data());
    for (std::string& problem : *problems) {
      if (problem.empty() && !ConvertRow(from, column.elements, to)) {
        problem =
            absl::StrCat("its feature \"", column.feature,
                         "\" has a value that is no ", DtypeName(column.dtype));
      }
      from += column.elements * ElementBytes(stored.dtype());
      to += column.elements;
    }
  });
  return rows;
}

// `column` as an Example stores it.
Column StoredColumn(const Column& column) {
  Column stored = column;
  stored.dtype = StoredType(column.dtype);
  if (stored.dtype == column.dtype || !column.default_value.has_value()) {
    return stored;
  }
  Tensor value(stored.dtype, tensorflow::TensorShape({}));
  VisitConvertedType(column.dtype, [&](auto* type) {
    using From = std::remove_pointer_t<decltype(type)>;
    const From from = *static_cast<const From*>(column.default_value->data());
    if (stored.dtype == tensorflow::DT_FLOAT) {
      value.scalar<float>()() = static_cast<float>(from);
    } else {
      value.scalar<int64_t>()() = static_cast<int64_t>(from);
    }
  });
  stored.default_value = value;
  return stored;
}

bool SameDefault(const Column& a, const Column& b) {
  if (!a.default_value.has_value() || !b.default_value.has_value()) {
    return a.default_value.has_value() == b.default_value.has_value();
  }
  if (a.dtype == tensorflow::DT_STRING) {
    return a.default_value->scalar<tstring>()() ==
           b.default_value->scalar<tstring>()();
  }
  return a.default_value->tensor_data() == b.default_value->tensor_data();
}

FastParseExampleConfig::Dense DenseConfig(const Column& stored) {
  Tensor default_value(stored.dtype, tensorflow::TensorShape({0}));
  if (stored.default_value.has_value()) {
    default_value = Tensor(stored.dtype, stored.shape);
    FillDefault(stored, 0, &default_value);
  }
  return FastParseExampleConfig::Dense(
      stored.feature, stored.dtype,
      tensorflow::PartialTensorShape(stored.shape.dim_sizes()), default_value,
      /*variable_length=*/false, stored.elements);
}

std::string_view ListName(DataType stored) {
  if (stored == tensorflow::DT_FLOAT) return "float";
  return stored == tensorflow::DT_INT64 ? "int64" : "bytes";
}

// What keeps `feature` from being read as `stored`; "" for nothing.
std::string Problem(const tensorflow::Feature& feature, const Column& stored) {
  DataType type = tensorflow::DT_STRING;
  int64_t values = feature.bytes_list().value_size();
  if (feature.has_float_list()) {
    type = tensorflow::DT_FLOAT;
    values = feature.float_list().value_size();
  } else if (feature.has_int64_list()) {
    type = tensorflow::DT_INT64;
    values = feature.int64_list().value_size();
  } else if (!feature.has_bytes_list()) {
    return stored.default_value.has_value()
               ? ""
               : absl::StrCat("its feature \"", stored.feature, "\" is empty");
  }
  if (type != stored.dtype) {
    return absl::StrCat("its feature \"", stored.feature, "\" has ",
                        ListName(type), " values, not ",
                        ListName(stored.dtype));
  }
  if (values != stored.elements) {
    return absl::StrCat("its feature \"", stored.feature, "\" has ", values,
                        values == 1 ? " value" : " values", ", not ",
                        stored.elements);
  }
  return "";
}

}  // namespace

absl::StatusOr<ExampleParser> ExampleParser::Create(std::vector<Column> columns,
                                                    ExamplePath path) {
  ExampleParser parser;
  parser.path_ = path;
  parser.columns_ = std::move(columns);
  std::vector<Column>& features = parser.features_;
  for (const Column& column : parser.columns_) {
    const Column stored = StoredColumn(column);
    const auto same = std::find_if(
        features.begin(), features.end(),
        [&](const Column& f) { return f.feature == stored.feature; });
    parser.feature_of_column_.push_back(same - features.begin());
    if (same == features.end()) {
      parser.config_.dense.push_back(DenseConfig(stored));
      features.push_back(stored);
    } else if (same->dtype != stored.dtype ||
               same->elements != stored.elements ||
               !SameDefault(*same, stored)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "feature \"", stored.feature,
          "\" is used twice with different types, shapes or default values"));
    }
  }
  return parser;
}

std::string ExampleParser::Explain(std::string_view bytes,
                                   const absl::Status& status) const {
  tensorflow::Example example;
  if (!example.ParseFromArray(bytes.data(), bytes.size())) {
    return "it is not a tf.train.Example";
  }
  const auto& features = example.features().feature();
  for (const Column& stored : features_) {
    const auto found = features.find(stored.feature);
    if (found != features.end()) {
      std::string problem = Problem(found->second, stored);
      if (!problem.empty()) return problem;
    } else if (!stored.default_value.has_value()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : features) names.push_back(name);
      std::sort(names.begin(), names.end());
      return absl::StrCat("it has no feature \"", stored.feature, "\"",
                          DidYouMean(stored.feature, names));
    }
  }
  return absl::StrCat("it cannot be parsed (", status.message(), ")");
}

absl::Status ExampleParser::ParseRows(
    absl::Span<const std::string_view> examples, absl::Span<const int64_t> rows,
    std::vector<Tensor>* features, std::vector<std::string>* problems) const {
  if (rows.empty()) return absl::OkStatus();
  std::vector<tstring> serialized(rows.size());
  for (int i = 0; i < rows.size(); ++i) {
    const std::string_view example = examples[rows[i]];
    serialized[i].assign_as_view(example.data(), example.size());
  }
  tensorflow::example::Result result;
  const absl::Status status = tensorflow::example::FastParseExample(
      config_, serialized, {}, /*thread_pool=*/nullptr, &result);
  if (!status.ok()) {
    if (rows.size() == 1) {
      (*problems)[rows[0]] = Explain(examples[rows[0]], status);
      return absl::OkStatus();
    }
    // Which ones they are shows by halving.
    const size_t half = rows.size() / 2;
    REQUANT_RETURN_IF_ERROR(
        ParseRows(examples, rows.first(half), features, problems));
    return ParseRows(examples, rows.subspan(half), features, problems);
  }
  for (int f = 0; f < features_.size(); ++f) {
    if (rows.size() == examples.size()) {
      (*features)[f] = result.dense_values[f];
      continue;
    }
    for (int i = 0; i < rows.size(); ++i) {
      CopyRows(features_[f], result.dense_values[f], i, 1, &(*features)[f],
               rows[i]);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> ExampleParser::Parse(
    absl::Span<const std::string_view> examples,
    std::vector<std::string>* problems) const {
  std::vector<Tensor> stored(features_.size());
  for (int f = 0; f < features_.size(); ++f) {
    REQUANT_ASSIGN_OR_RETURN(stored[f],
                             AllocateRows(features_[f], examples.size()));
  }
  ExampleScanner scanner(features_, absl::MakeSpan(stored));
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < examples.size(); ++row) {
    if (!(*problems)[row].empty()) continue;
    if (path_ == ExamplePath::kReference || !scanner.Scan(examples[row], row)) {
      rows.push_back(row);
    }
  }
  REQUANT_RETURN_IF_ERROR(ParseRows(examples, rows, &stored, problems));

  std::vector<Tensor> columns(columns_.size());
  for (int c = 0; c < columns_.size(); ++c) {
    REQUANT_ASSIGN_OR_RETURN(
        columns[c],
        Convert(columns_[c], stored[feature_of_column_[c]], problems));
  }
  return columns;
}

}  // namespace requant
