#include "runtime/datasets/formats/column.h"

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

absl::StatusOr<Column> MakeColumn(const std::string& feature,
                                  std::string_view dtype,
                                  absl::Span<const int64_t> shape) {
  Column column;
  column.feature = feature;
  REQUANT_ASSIGN_OR_RETURN(column.dtype, ParseDtype(dtype));
  REQUANT_ASSIGN_OR_RETURN(column.elements, CountElements(shape));
  REQUANT_RETURN_IF_ERROR(
      tensorflow::TensorShape::BuildTensorShape(shape, &column.shape));
  return column;
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
    REQUANT_ASSIGN_OR_RETURN(
        Column column,
        MakeColumn(input.feature(), input.dtype(), input.shape()));
    if (input.has_default_value()) {
      REQUANT_ASSIGN_OR_RETURN(
          column.default_value,
          ParseScalar(input.default_value(), column.dtype));
    }
    columns.push_back(std::move(column));
  }
  if (spec.has_label()) {
    const LabelSpec& label = spec.label();
    REQUANT_ASSIGN_OR_RETURN(
        Column column,
        MakeColumn(label.feature(), label.dtype(), label.shape()));
    columns.push_back(std::move(column));
  }
  return columns;
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

void CopyRows(const Column& column, const Tensor& from, int64_t from_row,
              int64_t count, Tensor* to, int64_t to_row) {
  CopyElements(column.dtype,
               RowAddress(const_cast<Tensor&>(from), column, from_row),
               count * column.elements, RowAddress(*to, column, to_row));
}

}  // namespace requant
