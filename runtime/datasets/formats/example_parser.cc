#include "runtime/datasets/formats/example_parser.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "tensorflow/core/example/example.pb.h"
#include "tensorflow/core/example/feature.pb.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;
using tensorflow::tstring;
using tensorflow::example::FastParseExampleConfig;

// Returns the type of the list in an Example that has values of `dtype`.
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

// Converts one record's values; returns false if one is out of range.
template <typename To>
bool ConvertRow(const void* stored, int64_t elements, To* to) {
  if constexpr (std::is_same_v<To, tstring>) {
    return true;
  } else if constexpr (std::is_integral_v<To>) {
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

// Returns the rows of a feature as `column` declares them.
absl::StatusOr<Tensor> Convert(const Column& column, Tensor stored,
                               std::vector<std::string>* problems) {
  if (stored.dtype() == column.dtype) {
    tensorflow::TensorShape shape = column.shape;
    shape.InsertDim(0, problems->size());
    Tensor shaped;
    // Two columns of a feature may have different shapes of the same size.
    if (shaped.CopyFrom(stored, shape)) return shaped;
    return absl::InternalError(
        absl::StrCat("feature \"", column.feature, "\" has changed its size"));
  }
  REQUANT_ASSIGN_OR_RETURN(Tensor rows, AllocateRows(column, problems->size()));
  VisitType(column.dtype, [&](auto* type) {
    const char* from = static_cast<const char*>(stored.data());
    auto* to = static_cast<decltype(type)>(rows.data());
    for (std::string& problem : *problems) {
      if (problem.empty() && !ConvertRow(from, column.elements, to)) {
        problem = absl::StrCat("its feature \"", column.feature,
                               "\" has a value that is no ",
                               tensorflow::DataTypeString(column.dtype));
      }
      from += column.elements * ElementBytes(stored.dtype());
      to += column.elements;
    }
  });
  return rows;
}

// Returns `column` as an Example stores it.
Column StoredColumn(const Column& column) {
  Column stored = column;
  stored.dtype = StoredType(column.dtype);
  if (stored.dtype == column.dtype || !column.default_value.has_value()) {
    return stored;
  }
  Tensor value(stored.dtype, tensorflow::TensorShape({}));
  VisitType(column.dtype, [&](auto* type) {
    using From = std::remove_pointer_t<decltype(type)>;
    if constexpr (!std::is_same_v<From, tstring>) {
      const From from = *static_cast<const From*>(column.default_value->data());
      if (stored.dtype == tensorflow::DT_FLOAT) {
        value.scalar<float>()() = static_cast<float>(from);
      } else {
        value.scalar<int64_t>()() = static_cast<int64_t>(from);
      }
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

// Returns what keeps `feature` from being read as `stored`, or "".
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
               : absl::StrCat("its feature \"", stored.feature, "\" is empty",
                              kNoDefault);
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

// Tags (field number and wire type) of Example, Features, Feature and the
// lists.
constexpr char kFeaturesTag = 0x0a;
constexpr char kEntryTag = 0x0a;
constexpr char kKeyTag = 0x0a;
constexpr char kValueTag = 0x12;
constexpr char kBytesListTag = 0x0a;
constexpr char kFloatListTag = 0x12;
constexpr char kInt64ListTag = 0x1a;
constexpr char kListValueTag = 0x0a;

// Takes a length-delimited field off the front of `bytes`. Returns false unless
// it is there with this tag.
inline bool TakeField(char tag, std::string_view* bytes,
                      std::string_view* field) {
  constexpr size_t kMaxLengthBytes = 4;
  if (bytes->size() < 2 || (*bytes)[0] != tag) return false;
  size_t length = 0;
  size_t i = 1;
  for (int shift = 0;; shift += 7, ++i) {
    if (i == bytes->size() || i > kMaxLengthBytes) return false;
    const unsigned char byte = (*bytes)[i];
    length |= size_t{byte & 0x7fu} << shift;
    if (byte < 0x80) break;
  }
  ++i;
  if (length > bytes->size() - i) return false;
  *field = bytes->substr(i, length);
  bytes->remove_prefix(i + length);
  return true;
}

// Does the same, but fails if anything follows the field.
inline bool OnlyField(char tag, std::string_view bytes,
                      std::string_view* field) {
  return TakeField(tag, &bytes, field) && bytes.empty();
}

// Decodes the rest of a number whose first byte is in `value`. Returns null if
// it is cut off or too long.
const char* DecodeLongVarint(const char* at, const char* end, uint64_t* value) {
  *value &= 0x7f;
  for (int shift = 7; shift < 64; shift += 7) {
    if (at == end) return nullptr;
    const uint64_t byte = static_cast<unsigned char>(*at++);
    // The tenth byte has the 64th bit.
    if (shift == 63 && byte > 1) return nullptr;
    *value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return at;
  }
  return nullptr;
}

bool DecodeVarints(std::string_view packed, int64_t count, int64_t* values) {
  const char* at = packed.data();
  const char* const end = at + packed.size();
  for (int64_t i = 0; i < count; ++i) {
    if (at == end) return false;
    uint64_t value = static_cast<unsigned char>(*at++);
    if (value >= 0x80) {
      if (at != end && static_cast<unsigned char>(*at) < 0x80) {
        value = (value & 0x7f) | uint64_t{static_cast<unsigned char>(*at++)}
                                     << 7;
      } else {
        at = DecodeLongVarint(at, end, &value);
        if (at == nullptr) return false;
      }
    }
    values[i] = static_cast<int64_t>(value);
  }
  return at == end;
}

bool ScanStrings(std::string_view list, int64_t count, tstring* values) {
  for (int64_t i = 0; i < count; ++i) {
    std::string_view value;
    if (!TakeField(kListValueTag, &list, &value)) return false;
    values[i].assign(value.data(), value.size());
  }
  return list.empty();
}

// Reads the values of a serialized Feature.
bool ScanValues(std::string_view feature, const Column& column, void* values) {
  std::string_view list, packed;
  switch (column.dtype) {
    case tensorflow::DT_FLOAT:
      if (!OnlyField(kFloatListTag, feature, &list) ||
          !OnlyField(kListValueTag, list, &packed) ||
          packed.size() != column.elements * sizeof(float)) {
        return false;
      }
      std::memcpy(values, packed.data(), packed.size());
      return true;
    case tensorflow::DT_INT64:
      return OnlyField(kInt64ListTag, feature, &list) &&
             OnlyField(kListValueTag, list, &packed) &&
             DecodeVarints(packed, column.elements,
                           static_cast<int64_t*>(values));
    default:
      return OnlyField(kBytesListTag, feature, &list) &&
             ScanStrings(list, column.elements, static_cast<tstring*>(values));
  }
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
    // Bisection finds which ones they are.
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

ExampleScanner::ExampleScanner(absl::Span<const Column> features,
                               absl::Span<tensorflow::Tensor> rows)
    : slots_(features.size()) {
  for (size_t i = 0; i < features.size(); ++i) {
    slots_[i].column = &features[i];
    slots_[i].rows = &rows[i];
    slots_by_name_.emplace(features[i].feature, &slots_[i]);
  }
}

ExampleScanner::Slot* ExampleScanner::FindSlot(size_t position,
                                               std::string_view name) {
  if (position < entries_.size() && entries_[position].name == name) {
    return entries_[position].slot;
  }
  if (position >= entries_.size()) entries_.resize(position + 1);
  const auto found = slots_by_name_.find(name);
  entries_[position] = {
      name, found == slots_by_name_.end() ? nullptr : found->second};
  return entries_[position].slot;
}

bool ExampleScanner::ScanFeature(std::string_view entry, size_t position,
                                 int64_t row) {
  std::string_view name, feature;
  if (!TakeField(kKeyTag, &entry, &name) ||
      !OnlyField(kValueTag, entry, &feature)) {
    return false;
  }
  Slot* const slot = FindSlot(position, name);
  if (slot == nullptr) return true;
  if (slot->last_row == row) return false;
  slot->last_row = row;
  return ScanValues(feature, *slot->column,
                    RowAddress(*slot->rows, *slot->column, row));
}

bool ExampleScanner::FillMissing(int64_t row) {
  for (const Slot& slot : slots_) {
    if (slot.last_row == row) continue;
    if (!slot.column->default_value.has_value()) return false;
    FillDefault(*slot.column, row, slot.rows);
  }
  return true;
}

bool ExampleScanner::Scan(std::string_view example, int64_t row) {
  std::string_view features, entry;
  if (!OnlyField(kFeaturesTag, example, &features)) return false;
  for (size_t position = 0; !features.empty(); ++position) {
    if (!TakeField(kEntryTag, &features, &entry) ||
        !ScanFeature(entry, position, row)) {
      return false;
    }
  }
  return FillMissing(row);
}

}  // namespace requant
