#ifndef REQUANT_RUNTIME_DATASETS_EXAMPLE_PARSER_H_
#define REQUANT_RUNTIME_DATASETS_EXAMPLE_PARSER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/datasets/column.h"
#include "tensorflow/core/util/example_proto_fast_parsing.h"

namespace requant {

// Serialized tf.train.Example messages to the rows of columns. An Example holds
// lists of float, int64 or bytes: float columns (double, half, bfloat16 too)
// take the first, integers and bool the second, strings the third. Thread-safe.
class ExampleParser {
 public:
  // An error when columns of one feature contradict each other.
  static absl::StatusOr<ExampleParser> Create(std::vector<Column> columns);

  // One tensor per column; row i is from examples[i]. `problems` has a string
  // per example: those that are not empty on entry are not looked at, and those
  // not empty on return say what is wrong; such rows are undefined.
  absl::StatusOr<std::vector<tensorflow::Tensor>> Parse(
      absl::Span<const std::string_view> examples,
      std::vector<std::string>* problems) const;

 private:
  // A feature as it is stored, and the columns that ask for it.
  struct Feature {
    Column stored;
    std::vector<int> columns;
  };

  ExampleParser() = default;

  absl::Status ParseRows(absl::Span<const std::string_view> examples,
                         absl::Span<const int64_t> rows,
                         std::vector<tensorflow::Tensor>* features,
                         std::vector<std::string>* problems) const;
  std::string Explain(std::string_view example,
                      const absl::Status& status) const;

  std::vector<Column> columns_;
  std::vector<Feature> features_;
  tensorflow::example::FastParseExampleConfig config_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_EXAMPLE_PARSER_H_
