#include "runtime/datasets/formats/column.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/nearest_name.h"
#include "runtime/datasets/formats/record_source.h"

namespace requant {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;
using tensorflow::tstring;

// The types that a declaration may name.
constexpr DataType kTypes[] = {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE,
                               tensorflow::DT_HALF,  tensorflow::DT_BFLOAT16,
                               tensorflow::DT_INT8,  tensorflow::DT_UINT8,
                               tensorflow::DT_INT32, tensorflow::DT_INT64,
                               tensorflow::DT_BOOL,  tensorflow::DT_STRING};

template <typename Float>
bool ParseFloat(std::string_view text, Float* value) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  // from_chars would also accept hexadecimal numbers.
  if (text.find_first_of("xX") != std::string_view::npos) return false;
  const char* const end = text.data() + text.size();
  const absl::from_chars_result result =
      absl::from_chars(text.data(), end, *value);
  if (text.empty() || result.ptr != end) return false;
  // A number too small for the type is read as 0; one too large is rejected.
  return result.ec == std::errc() ||
         (result.ec == std::errc::result_out_of_range && *value < 1 &&
          *value > -1);
}

bool ParseBool(std::string_view text, bool* value) {
  text = absl::StripAsciiWhitespace(text);
  *value = text == "1" || absl::EqualsIgnoreCase(text, "true");
  return *value || text == "0" || absl::EqualsIgnoreCase(text, "false");
}

template <typename T>
bool ParseElement(std::string_view text, void* element) {
  T* const value = static_cast<T*>(element);
  if constexpr (std::is_same_v<T, tstring>) {
    value->assign(text.data(), text.size());
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    return ParseBool(text, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return ParseFloat(text, value);
  } else if constexpr (!std::is_integral_v<T>) {
    // Types without a parser of their own are rounded from float.
    float wide = 0;
    if (!ParseFloat(text, &wide)) return false;
    *value = static_cast<T>(wide);
    return true;
  } else if constexpr (sizeof(T) >= sizeof(int32_t)) {
    return absl::SimpleAtoi(text, value);
  } else {
    int32_t wide = 0;
    if (!absl::SimpleAtoi(text, &wide)) return false;
    *value = static_cast<T>(wide);
    return *value == wide;
  }
}

// Returns the column of an input's or a label's feature.
template <typename Spec>
absl::StatusOr<Column> MakeColumn(const std::string& feature, const Spec& spec,
                                  absl::Span<const int64_t> shape) {
  Column column;
  column.feature = feature;
  REQUANT_ASSIGN_OR_RETURN(column.dtype, ParseDtype(spec.dtype()));
  REQUANT_ASSIGN_OR_RETURN(column.elements, CountElements(shape));
  REQUANT_RETURN_IF_ERROR(
      tensorflow::TensorShape::BuildTensorShape(shape, &column.shape));
  return column;
}

absl::Status AddInputColumns(const InputSpec& input,
                             std::vector<Column>* columns) {
  if (input.feature().empty()) {
    return absl::InvalidArgumentError("an input has no feature");
  }
  for (const std::string& feature : input.feature()) {
    REQUANT_ASSIGN_OR_RETURN(
        Column column,
        MakeColumn(feature, input,
                   input.feature_size() > 1
                       ? absl::Span<const int64_t>()
                       : absl::Span<const int64_t>(input.shape())));
    if (input.has_default_value()) {
      REQUANT_ASSIGN_OR_RETURN(
          column.default_value,
          ParseScalar(input.default_value(), column.dtype));
    }
    columns->push_back(std::move(column));
  }
  return absl::OkStatus();
}

// Returns the problem of a label that the vocabulary lacks.
std::string NotInVocabulary(const Column& column, const std::string& text) {
  // Longer ones are not worth a search for every bad record.
  constexpr size_t kMostSearched = 1000;
  constexpr size_t kLongestText = 256;
  std::vector<std::string> known;
  if (column.vocabulary->size() <= kMostSearched &&
      text.size() <= kLongestText) {
    for (const auto& [name, number] : *column.vocabulary) {
      known.push_back(name);
    }
    std::sort(known.begin(), known.end());
  }
  return absl::StrCat("label \"", column.feature, "\" has ", QuotedField(text),
                      ", which is not in its vocabulary",
                      DidYouMean(text, known));
}

void CopyElements(DataType dtype, const void* from, int64_t count, void* to) {
  if (dtype == tensorflow::DT_STRING) {
    const tstring* const strings = static_cast<const tstring*>(from);
    std::copy(strings, strings + count, static_cast<tstring*>(to));
  } else {
    std::memcpy(to, from, count * ElementBytes(dtype));
  }
}

}  // namespace

absl::StatusOr<DataType> ParseDtype(std::string_view name) {
  DataType dtype;
  if (tensorflow::DataTypeFromString(name, &dtype) &&
      absl::c_linear_search(kTypes, dtype)) {
    return dtype;
  }
  std::vector<std::string> names;
  for (const DataType type : kTypes) {
    names.push_back(tensorflow::DataTypeString(type));
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no dtype; write one of ", absl::StrJoin(names, ", ")));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown dtype \"", name, "\"", DidYouMean(name, names),
                   "; there are ", absl::StrJoin(names, ", ")));
}

int64_t ElementBytes(DataType dtype) {
  return dtype == tensorflow::DT_STRING ? sizeof(tstring)
                                        : tensorflow::DataTypeSize(dtype);
}

absl::StatusOr<int64_t> CountElements(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  // One dimension is reserved for the batch.
  if (shape.size() >= tensorflow::TensorShape::MaxDimensions()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a shape of ", shape.size(), " dimensions; TensorFlow has at most ",
        tensorflow::TensorShape::MaxDimensions(), " with the batch's"));
  }
  for (const int64_t size : shape) {
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape has ", size,
                       "; every dimension is at least 1, and the batch's own "
                       "is not part of it"));
    }
    if (size > kMaxElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a record of shape [", absl::StrJoin(shape, ", "), "] is too large"));
    }
    elements *= size;
  }
  return elements;
}

absl::Status CheckFeedShape(absl::Span<const int64_t> feed_shape,
                            int64_t elements) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feed_shape [", absl::StrJoin(feed_shape, ", "), "] ", why));
  };
  if (feed_shape.size() > tensorflow::TensorShape::MaxDimensions()) {
    return refuse("has too many dimensions");
  }
  int64_t known = 1;
  int unknown = 0;
  for (const int64_t size : feed_shape) {
    if (size == -1) {
      ++unknown;
    } else if (size < 1) {
      return refuse(
          absl::StrCat("has ", size, "; every dimension is -1 or at least 1"));
    } else if (size > elements / known) {
      return refuse(absl::StrCat("does not fit records of ", elements,
                                 " elements: its known dimensions have more"));
    } else {
      known *= size;
    }
  }
  if (unknown != 1) {
    return refuse(absl::StrCat(
        "needs exactly one -1, because the last batch may be smaller"));
  }
  if (elements % known != 0) {
    return refuse(absl::StrCat("does not fit records of ", elements,
                               " elements: ", known, " does not divide it"));
  }
  return absl::OkStatus();
}

ParseFunction ParserOf(DataType dtype) {
  return VisitType(dtype, [](auto* type) -> ParseFunction {
    return ParseElement<std::remove_pointer_t<decltype(type)>>;
  });
}

absl::StatusOr<Tensor> ParseScalar(std::string_view text, DataType dtype) {
  Tensor scalar(dtype, tensorflow::TensorShape({}));
  if (ParserOf(dtype)(text, scalar.data())) return scalar;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no ", tensorflow::DataTypeString(dtype)));
}

absl::StatusOr<std::vector<Column>> ColumnsOf(const DatasetSpec& spec) {
  std::vector<Column> columns;
  for (const InputSpec& input : spec.input()) {
    REQUANT_RETURN_IF_ERROR(AddInputColumns(input, &columns));
  }
  if (spec.has_label()) {
    const LabelSpec& label = spec.label();
    REQUANT_ASSIGN_OR_RETURN(Column column,
                             MakeColumn(label.feature(), label, label.shape()));
    if (label.vocabulary_size() > 0) {
      Vocabulary vocabulary;
      for (const std::string& text : label.vocabulary()) {
        vocabulary.emplace(text, vocabulary.size());
      }
      column.vocabulary =
          std::make_shared<const Vocabulary>(std::move(vocabulary));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

absl::StatusOr<Tensor> ConstantTensor(const ConstantSpec& constant) {
  constexpr int64_t kMostConstantElements = 1 << 20;
  REQUANT_ASSIGN_OR_RETURN(const DataType dtype, ParseDtype(constant.dtype()));
  REQUANT_ASSIGN_OR_RETURN(const int64_t elements,
                           CountElements(constant.shape()));
  const int values = constant.value_size();
  if (elements > kMostConstantElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("a constant of ", elements, " elements is too large; ",
                     kMostConstantElements, " are the most"));
  }
  if (values != 1 && values != elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a constant of ", elements, elements == 1 ? " element" : " elements",
        " has one value", elements == 1 ? "" : " for all or one for each",
        ", not ", values));
  }
  tensorflow::TensorShape shape;
  REQUANT_RETURN_IF_ERROR(
      tensorflow::TensorShape::BuildTensorShape(constant.shape(), &shape));
  Tensor tensor(dtype, shape);
  char* const to = static_cast<char*>(tensor.data());
  for (int64_t i = 0; i < elements; ++i) {
    REQUANT_ASSIGN_OR_RETURN(
        const Tensor value,
        ParseScalar(constant.value(values == 1 ? 0 : i), dtype));
    CopyElements(dtype, value.data(), 1, to + i * ElementBytes(dtype));
  }
  return tensor;
}

absl::StatusOr<Tensor> AllocateRows(const Column& column, int64_t rows) {
  if (rows > kMaxElements / column.elements) {
    return absl::ResourceExhaustedError(
        absl::StrCat(rows, " records of feature \"", column.feature, "\" with ",
                     column.elements, " elements each are too many at once"));
  }
  tensorflow::TensorShape shape = column.shape;
  shape.InsertDim(0, rows);
  Tensor tensor(column.dtype, shape);
  if (tensor.IsInitialized()) return tensor;
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for ", rows, " records of feature \"",
                   column.feature, "\" with ", column.elements, " elements"));
}

void* RowAddress(Tensor& rows, const Column& column, int64_t row) {
  return static_cast<char*>(rows.data()) +
         row * column.elements * ElementBytes(column.dtype);
}

void FillDefault(const Column& column, int64_t row, Tensor* rows) {
  char* const to = static_cast<char*>(RowAddress(*rows, column, row));
  for (int64_t i = 0; i < column.elements; ++i) {
    CopyElements(column.dtype, column.default_value->data(), 1,
                 to + i * ElementBytes(column.dtype));
  }
}

absl::Status ReadClasses(const std::vector<Column>& columns,
                         std::vector<Tensor>* rows,
                         std::vector<std::string>* problems) {
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].vocabulary == nullptr) continue;
    Column column = columns[c];
    column.dtype = tensorflow::DT_INT64;
    REQUANT_ASSIGN_OR_RETURN(Tensor classes,
                             AllocateRows(column, problems->size()));
    const auto* text = static_cast<const tstring*>((*rows)[c].data());
    auto* number = static_cast<int64_t*>(classes.data());
    for (std::string& problem : *problems) {
      for (int64_t i = 0; i < column.elements; ++i, ++text, ++number) {
        *number = 0;
        if (!problem.empty()) continue;
        const auto found = column.vocabulary->find(
            std::string_view(text->data(), text->size()));
        if (found == column.vocabulary->end()) {
          problem = NotInVocabulary(column, *text);
        } else {
          *number = found->second;
        }
      }
    }
    (*rows)[c] = std::move(classes);
  }
  return absl::OkStatus();
}

void CopyRows(const Column& column, const Tensor& from, int64_t from_row,
              int64_t count, Tensor* to, int64_t to_row) {
  CopyElements(column.dtype,
               RowAddress(const_cast<Tensor&>(from), column, from_row),
               count * column.elements, RowAddress(*to, column, to_row));
}

}  // namespace requant
