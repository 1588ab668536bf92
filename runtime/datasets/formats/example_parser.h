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

// How Examples are read: by ExampleScanner where it can, or all by TensorFlow's
// FastParseExample. The results are the same.
enum class ExamplePath { kFastest, kReference };

// Serialized tf.train.Example messages to the rows of columns. An Example holds
// lists of float, int64 or bytes: float columns (double, half, bfloat16 too)
// take the first, integers and bool the second, strings the third. Thread-safe.
class ExampleParser {
 public:
  // Fails when columns of one feature contradict each other.
  static absl::StatusOr<ExampleParser> Create(
      std::vector<Column> columns, ExamplePath path = ExamplePath::kFastest);

  // Returns one tensor per column; row i is from examples[i]. `problems` has a
  // string per example: those that are not empty on entry are not looked at,
  // and those not empty on return say what is wrong; such rows are undefined.
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
  // The features that have different names, as they are stored, and which one
  // each column takes.
  std::vector<Column> features_;
  std::vector<int> feature_of_column_;
  tensorflow::example::FastParseExampleConfig config_;
};

// Reads serialized tf.train.Examples straight into tensors, several times
// faster than FastParseExample because it takes only the form that writers
// produce: each feature once, its values packed and of the declared number.
// Everything else, broken messages included, is left to FastParseExample, and
// what is read here is read alike there. Not thread-safe.
class ExampleScanner {
 public:
  // `features` have stored types (float, int64, string) and different names;
  // rows[i] is features[i]'s tensor. Both must outlive the scanner, and so must
  // every example given to Scan.
  ExampleScanner(absl::Span<const Column> features,
                 absl::Span<tensorflow::Tensor> rows);

  // Fills row `row` of every tensor. Returns false when the example is not in
  // the common form or lacks a feature without default, and then the row is
  // undefined.
  bool Scan(std::string_view example, int64_t row);

 private:
  struct Slot {
    const Column* column = nullptr;
    tensorflow::Tensor* rows = nullptr;
    // The last row that had the feature.
    int64_t last_row = -1;
  };
  // A feature of the last example: most examples have the same in that order.
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
