#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_COLUMN_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_COLUMN_H_

// A column is a declared feature of every record, with its type and shape. The
// readers of all formats fill it as one tensor of [records, shape...].

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/datasets/dataset.pb.h"
#include "tensorflow/core/framework/bfloat16.h"
#include "tensorflow/core/framework/numeric_types.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/tstring.h"

namespace requant {

// Maps the texts that labels may be to their classes.
using Vocabulary = absl::flat_hash_map<std::string, int64_t>;

struct Column {
  std::string feature;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  // The shape of one record.
  tensorflow::TensorShape shape;
  int64_t elements = 1;
  // One element of `dtype`, used for every element that a record lacks.
  std::optional<tensorflow::Tensor> default_value;
  // Set for a column of strings that ReadClasses turns into int64.
  std::shared_ptr<const Vocabulary> vocabulary;
};

// The most elements that one record's feature, or one batch of it, may have.
inline constexpr int64_t kMaxElements = int64_t{1} << 36;

// Ends messages about a value that a record lacks.
inline constexpr char kNoDefault[] =
    ", and no declaration gives it a default_value";

// Calls `visit` with a null pointer to the C++ type of `dtype`, which a
// declaration must be able to name, and returns the result.
template <typename Visitor>
auto VisitType(tensorflow::DataType dtype, Visitor visit) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return visit(static_cast<float*>(nullptr));
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
    case tensorflow::DT_INT32:
      return visit(static_cast<int32_t*>(nullptr));
    case tensorflow::DT_INT64:
      return visit(static_cast<int64_t*>(nullptr));
    case tensorflow::DT_BOOL:
      return visit(static_cast<bool*>(nullptr));
    default:
      return visit(static_cast<tensorflow::tstring*>(nullptr));
  }
}

// Returns DT_FLOAT for "float" or "float32", and so on. Fails for a type that a
// declaration may not name.
absl::StatusOr<tensorflow::DataType> ParseDtype(std::string_view name);

// Returns the size of one element in a tensor; for strings, their handle's.
int64_t ElementBytes(tensorflow::DataType dtype);

// Returns the number of elements; every dimension must be at least 1.
absl::StatusOr<int64_t> CountElements(absl::Span<const int64_t> shape);

// Fails unless any number of records with `elements` elements each can be fed
// as `feed_shape`, which has one -1.
absl::Status CheckFeedShape(absl::Span<const int64_t> feed_shape,
                            int64_t elements);

// Parses `text` strictly into an element of a tensor of that type: decimal
// numbers within the type's range, with blanks around them ignored; true,
// false, 1 and 0; or strings as they are. On failure, returns false and leaves
// the element undefined.
using ParseFunction = bool (*)(std::string_view text, void* element);
ParseFunction ParserOf(tensorflow::DataType dtype);

// Returns a scalar of `dtype`.
absl::StatusOr<tensorflow::Tensor> ParseScalar(std::string_view text,
                                               tensorflow::DataType dtype);

// Returns the columns of the inputs' features, in order, then that of any
// label. The features of an input with several of them are scalars.
absl::StatusOr<std::vector<Column>> ColumnsOf(const DatasetSpec& spec);

// Returns the tensor that a constant feeds in every run.
absl::StatusOr<tensorflow::Tensor> ConstantTensor(const ConstantSpec& constant);

// Returns an uninitialized tensor of [rows, shape...]. Fails if memory is
// short.
absl::StatusOr<tensorflow::Tensor> AllocateRows(const Column& column,
                                                int64_t rows);

// Returns the address of row `row` of a tensor that AllocateRows gave.
void* RowAddress(tensorflow::Tensor& rows, const Column& column, int64_t row);

// Fills row `row` with the default value, which the column must have.
void FillDefault(const Column& column, int64_t row, tensorflow::Tensor* rows);

// Turns the strings of columns that have a vocabulary into their classes.
// `problems` has a string per row, as in RecordDecoder: rows whose string is
// not empty are skipped, and it is set for one that the vocabulary lacks.
absl::Status ReadClasses(const std::vector<Column>& columns,
                         std::vector<tensorflow::Tensor>* rows,
                         std::vector<std::string>* problems);

// Copies `count` rows; the tensors are of the same column and do not overlap.
void CopyRows(const Column& column, const tensorflow::Tensor& from,
              int64_t from_row, int64_t count, tensorflow::Tensor* to,
              int64_t to_row);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_COLUMN_H_
