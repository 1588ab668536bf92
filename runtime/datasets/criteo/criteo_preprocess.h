#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_PREPROCESS_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_PREPROCESS_H_

// The challenge's text files to records, one output per input.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/criteo/criteo_format.h"
#include "runtime/datasets/criteo/criteo_writer.h"

namespace requant {

struct PreprocessFile {
  std::string input;
  std::string output;
};

struct PreprocessOptions {
  std::vector<PreprocessFile> files;
  CriteoFormat format = CriteoFormat::kPreprocessed;
  int64_t buckets = kDefaultBuckets;
  // Unset: those of all inputs together, which are then read twice.
  std::optional<NumericRanges> ranges;
  // Where to write the ranges; empty: nowhere.
  std::string ranges_out;
  // A bad row ends it all before anything is written.
  bool strict = false;
};

struct PreprocessedFile {
  int64_t rows = 0;
  int64_t positives = 0;
  int64_t bad_rows = 0;
};

// All outputs are written whole or none is: they are put in their places at the
// end. A file without a good row is an
// error. The results are in the order of the files.
absl::StatusOr<std::vector<PreprocessedFile>> Preprocess(
    const PreprocessOptions& options);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_PREPROCESS_H_
