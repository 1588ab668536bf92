#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_COLUMN_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_COLUMN_H_

// One declared feature of every record, its values' type and count: what the
// readers of all formats fill, as one tensor of [records, shape...].

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/datasets/dataset.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

struct Column {
  std::string feature;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  // Of one record.
  tensorflow::TensorShape shape;
  int64_t elements = 1;
  // One element of `dtype`, for every element of a feature that a record lacks.
  std::optional<tensorflow::Tensor> default_value;
};

// The most elements that one record's feature, or one batch of it, may have.
inline constexpr int64_t kMaxElements = int64_t{1} << 36;

// "float" to DT_FLOAT, for the types that a declaration may name.
absl::StatusOr<tensorflow::DataType> ParseDtype(std::string_view name);

// DT_FLOAT to "float"; TensorFlow's name for types outside declarations.
std::string DtypeName(tensorflow::DataType dtype);

// The size of one element in a tensor, strings' handles included.
int64_t ElementBytes(tensorflow::DataType dtype);

// The elements of a record; every dimension must be at least 1.
absl::StatusOr<int64_t> CountElements(absl::Span<const int64_t> shape);

// Whether any number of records of so many elements can be fed as `feed_shape`,
// which has one -1.
absl::Status CheckFeedShape(absl::Span<const int64_t> feed_shape,
                            int64_t elements);

// Reads `text` strictly into an element of a tensor of that type: numbers in
// decimal within the type's range, blanks around them ignored; true, false, 1
// and 0; strings as they are. Returns false, and leaves it undefined,
// otherwise.
using ParseFunction = bool (*)(std::string_view text, void* element);
ParseFunction ParserOf(tensorflow::DataType dtype);

// A scalar of `dtype`.
absl::StatusOr<tensorflow::Tensor> ParseScalar(std::string_view text,
                                               tensorflow::DataType dtype);

// The columns of the inputs, in their order, then that of the label if there is
// one.
absl::StatusOr<std::vector<Column>> ColumnsOf(const DatasetSpec& spec);

// An uninitialised tensor of [rows, shape...]; an error when memory is short.
absl::StatusOr<tensorflow::Tensor> AllocateRows(const Column& column,
                                                int64_t rows);

// The address of row `row` of a tensor that AllocateRows gave.
void* RowAddress(tensorflow::Tensor& rows, const Column& column, int64_t row);

// Fills row `row` with the default value, which the column must have.
void FillDefault(const Column& column, int64_t row, tensorflow::Tensor* rows);

// Copies `count` rows; the tensors are of the same column and do not overlap.
void CopyRows(const Column& column, const tensorflow::Tensor& from,
              int64_t from_row, int64_t count, tensorflow::Tensor* to,
              int64_t to_row);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_COLUMN_H_
