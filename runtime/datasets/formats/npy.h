#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_NPY_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_NPY_H_

// Reads NumPy's .npy format: a magic number, a version, the text of a Python
// dictionary that gives the elements' type, order and shape, and the elements.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/records/input_file.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

struct NpyHeader {
  // 'f' float, 'i' signed, 'u' unsigned, 'b' bool, 'S' bytes, 'U' UTF-32 text.
  char kind = 0;
  // The size of one element.
  int64_t item_bytes = 0;
  // Whether arrays of several dimensions are stored column by column.
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads the header and leaves `file` at the first element. Fails also for types
// that cannot be read (objects, records, big-endian numbers, ...). Errors say
// what is wrong without naming the file.
absl::StatusOr<NpyHeader> ReadNpyHeader(InputFile* file);

// Converts `count` elements of an array to those of a tensor.
using NpyConverter = void (*)(const char* from, int64_t item_bytes,
                              int64_t count, void* to);

// Returns the conversion of the array's elements to `dtype`, which must be
// exact for every value, except that float32 is rounded to bfloat16, which
// NumPy lacks. Bytes and text (as UTF-8) become strings. Errors say what the
// array has and what could be declared, without naming the array.
absl::StatusOr<NpyConverter> NpyConverterTo(const NpyHeader& header,
                                            tensorflow::DataType dtype);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_NPY_H_
