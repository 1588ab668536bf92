#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_PARSER_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/datasets/formats/column.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/util/example_proto_fast_parsing.h"

namespace requant {

// How Examples are read: by ExampleScanner where possible, or all by
// TensorFlow's FastParseExample. The results are the same.
enum class ExamplePath { kFastest, kReference };

// Parses serialized tf.train.Example messages into the rows of columns. Columns
// of floating-point types take lists of float, integers and bool lists of
// int64, and strings lists of bytes. Thread-safe.
class ExampleParser {
 public:
  // Fails if columns of one feature contradict each other.
  static absl::StatusOr<ExampleParser> Create(
      std::vector<Column> columns, ExamplePath path = ExamplePath::kFastest);

  // Returns one tensor per column; row i is from examples[i]. `problems` has a
  // string per example. Examples whose string is not empty on entry are
  // skipped; strings that are not empty on return say what is wrong, and those
  // rows are undefined.
  absl::StatusOr<std::vector<tensorflow::Tensor>> Parse(
      absl::Span<const std::string_view> examples,
      std::vector<std::string>* problems) const;

 private:
  ExampleParser() = default;

  absl::Status ParseRows(absl::Span<const std::string_view> examples,
                         absl::Span<const int64_t> rows,
                         std::vector<tensorflow::Tensor>* features,
                         std::vector<std::string>* problems) const;
  std::string Explain(std::string_view example,
                      const absl::Status& status) const;

  ExamplePath path_ = ExamplePath::kFastest;
  std::vector<Column> columns_;
  // The distinct features, as stored, and the index of each column's feature.
  std::vector<Column> features_;
  std::vector<int> feature_of_column_;
  tensorflow::example::FastParseExampleConfig config_;
};

// Reads serialized tf.train.Examples straight into tensors, several times
// faster than FastParseExample because it takes only the form that writers
// produce: each feature once, its values packed and of the declared number.
// Everything else, including broken messages, is left to FastParseExample,
// whose results for that form are the same. Not thread-safe.
class ExampleScanner {
 public:
  // `features` have stored types (float, int64, string) and distinct names;
  // rows[i] is features[i]'s tensor. Both must outlive the scanner, and so must
  // every example given to Scan.
  ExampleScanner(absl::Span<const Column> features,
                 absl::Span<tensorflow::Tensor> rows);

  // Fills row `row` of every tensor. Returns false, and leaves the row
  // undefined, if the example is not in the common form or lacks a feature that
  // has no default.
  bool Scan(std::string_view example, int64_t row);

 private:
  struct Slot {
    const Column* column = nullptr;
    tensorflow::Tensor* rows = nullptr;
    // The last row that had the feature.
    int64_t last_row = -1;
  };
  // A feature of the last example. Most examples have the same ones in order.
  struct Entry {
    std::string_view name;
    Slot* slot = nullptr;
  };

  Slot* FindSlot(size_t position, std::string_view name);
  bool ScanFeature(std::string_view entry, size_t position, int64_t row);
  bool FillMissing(int64_t row);

  std::vector<Slot> slots_;
  absl::flat_hash_map<std::string_view, Slot*> slots_by_name_;
  std::vector<Entry> entries_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_PARSER_H_
