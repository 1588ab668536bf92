#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_NPY_VALUES_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_NPY_VALUES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/datasets/formats/npy_header.h"
#include "tensorflow/core/framework/types.h"

namespace requant {

// Converts `count` elements of an array to those of a tensor.
using NpyConverter = void (*)(const char* from, int64_t item_bytes,
                              int64_t count, void* to);

// How elements of the array become `dtype`: only where every value keeps its
// exact value, except that float32 is rounded to bfloat16, which NumPy lacks.
// Bytes and text (as UTF-8) become strings. Errors say what the array has and
// what could be declared, without naming it.
absl::StatusOr<NpyConverter> NpyConverterTo(const NpyHeader& header,
                                            tensorflow::DataType dtype);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_NPY_VALUES_H_
