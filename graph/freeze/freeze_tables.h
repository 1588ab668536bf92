#ifndef REQUANT_GRAPH_FREEZE_FREEZE_TABLES_H_
#define REQUANT_GRAPH_FREEZE_FREEZE_TABLES_H_

// Lookup tables that fill themselves. A frozen graph has no node that its user
// runs first, so every lookup waits for the table's initializer, which
// TensorFlow runs each time: with the same content that is allowed and costs
// little.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/freeze/checkpoint.h"
#include "graph/freeze/freeze.h"
#include "graph/graph_index.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace requant {

// Makes the tables that `outputs` need fill themselves, from constants: text
// files and tables in the checkpoint become constants of the graph. `model`'s
// graph has been moved into `index`. Returns the number of tables. A table with
// no initializer, or one whose content is not known, is an error that names it.
absl::StatusOr<int> KeepTablesFilled(
    const std::vector<std::string>& outputs, const FreezeInput& model,
    const std::function<absl::StatusOr<const Checkpoint*>()>& checkpoint,
    GraphIndex* index);

// A table's content: vectors of equal length.
struct TableContent {
  tensorflow::Tensor keys;
  tensorflow::Tensor values;
};

// How a line becomes an entry, as in TensorFlow's InitializeTableFromTextFile.
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

#endif  // REQUANT_GRAPH_FREEZE_FREEZE_TABLES_H_
