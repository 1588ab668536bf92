#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_NPY_HEADER_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_NPY_HEADER_H_

// The header of NumPy's .npy format: a magic number, a version, and the text of
// a Python dictionary that gives the elements' type, their order and the shape.

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/formats/input_file.h"

namespace requant {

struct NpyHeader {
  // 'f' float, 'i' signed, 'u' unsigned, 'b' bool, 'S' bytes, 'U' UTF-32 text.
  char kind = 0;
  // Of one element.
  int64_t item_bytes = 0;
  // Elements of arrays with more than one dimension are column by column.
  bool fortran_order = false;
  std::vector<int64_t> shape;

  // As NumPy calls it, such as "float32".
  std::string TypeName() const;
};

// Reads the header and leaves `file` at the first element. Errors say what is
// wrong without naming the file; types that cannot be read (objects, records,
// big-endian numbers ...) are among them.
absl::StatusOr<NpyHeader> ReadNpyHeader(InputFile* file);

// Reads the dictionary, as in
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text);

// Reads until `size` bytes are there or the file ends; how many are.
absl::StatusOr<size_t> ReadFully(InputFile* file, char* buffer, size_t size);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_NPY_HEADER_H_
