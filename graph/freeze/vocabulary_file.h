#ifndef REQUANT_GRAPH_FREEZE_VOCABULARY_FILE_H_
#define REQUANT_GRAPH_FREEZE_VOCABULARY_FILE_H_

// Text files that lookup tables are filled from.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// A table's content: vectors of equal length.
struct TableContent {
  tensorflow::Tensor keys;
  tensorflow::Tensor values;
};

// How a line becomes an entry, as TensorFlow's InitializeTableFromTextFile has
// it.
struct VocabularyFormat {
  static constexpr int64_t kWholeLine = -2;
  static constexpr int64_t kLineNumber = -1;

  tensorflow::DataType key_dtype;
  tensorflow::DataType value_dtype;
  // A column of the line, or one of the two above.
  int64_t key_index;
  int64_t value_index;
  char delimiter = '\t';
  // How many lines to take; -1 for all.
  int64_t size = -1;
  // How many lines to pass over first.
  int64_t offset = 0;
};

// Reads the entries. A line that does not fit is an error with its number.
absl::StatusOr<TableContent> ReadVocabulary(const std::string& path,
                                            const VocabularyFormat& format);

// Drops entries that repeat an earlier one: TensorFlow's tables take them once,
// but not when they are filled again with the same content. The same key with
// another value is an error. Content that is not two vectors is left alone.
absl::Status DropRepeatedKeys(TableContent* content);

}  // namespace requant

#endif  // REQUANT_GRAPH_FREEZE_VOCABULARY_FILE_H_
