#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_SCANNER_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_SCANNER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "runtime/datasets/formats/column.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

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

  // Fills row `row` of every tensor; false when the example is not in the
  // common form or lacks a feature without default, and then the row is
  // undefined.
  bool Scan(std::string_view example, int64_t row);

 private:
  struct Slot {
    const Column* column = nullptr;
    tensorflow::Tensor* rows = nullptr;
    // Of the last row that had the feature.
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

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_EXAMPLE_SCANNER_H_
