#ifndef REQUANT_RUNTIME_SESSION_TOKEN_ARRAY_H_
#define REQUANT_RUNTIME_SESSION_TOKEN_ARRAY_H_

// Texts as numbers: a NumPy file (.npy) of whole numbers with two dimensions,
// one text per row.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

// Returns the file that `path` means: itself, or, for a folder, its
// input_ids.npy or else the first by name of the files in it that are token
// arrays; "" when a folder has none. Fails when there is nothing at `path`.
absl::StatusOr<std::string> FindTokenArray(const std::string& path);

struct TokenArray {
  // How many texts the file has.
  int64_t rows = 0;
  // The first of them, DT_INT64 with the shape [texts, length].
  tensorflow::Tensor ids;
};

// Reads the first `rows` texts, or all when there are fewer. Fails, naming the
// file, when it is no token array or has no text.
absl::StatusOr<TokenArray> ReadTokenArray(const std::string& path,
                                          int64_t rows);

}  // namespace requant

#endif  // REQUANT_RUNTIME_SESSION_TOKEN_ARRAY_H_
