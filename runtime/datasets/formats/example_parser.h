#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_PARSER_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/datasets/formats/column.h"
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
  // An error when columns of one feature contradict each other.
  static absl::StatusOr<ExampleParser> Create(
      std::vector<Column> columns, ExamplePath path = ExamplePath::kFastest);

  // One tensor per column; row i is from examples[i]. `problems` has a string
  // per example: those that are not empty on entry are not looked at, and those
  // not empty on return say what is wrong; such rows are undefined.
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
  // Of different names, as they are stored, and which one each column takes.
  std::vector<Column> features_;
  std::vector<int> feature_of_column_;
  tensorflow::example::FastParseExampleConfig config_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_PARSER_H_
