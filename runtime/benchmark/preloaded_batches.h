#ifndef REQUANT_RUNTIME_BENCHMARK_PRELOADED_BATCHES_H_
#define REQUANT_RUNTIME_BENCHMARK_PRELOADED_BATCHES_H_

// Batches in memory, so that reading them is no part of what is measured.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"

namespace requant {

// Reads the first batches of a dataset: `max_batches` of them, or as many as
// fit in `max_bytes`, but at least one. All have `options.batch_size` records,
// unless the whole dataset has fewer; a dataset without records is an error.
// Errors name the dataset as `name`.
absl::StatusOr<std::vector<Batch>> PreloadBatches(const DatasetSpec& dataset,
                                                  const std::string& name,
                                                  BatchOptions options,
                                                  int64_t max_batches,
                                                  int64_t max_bytes);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_PRELOADED_BATCHES_H_
