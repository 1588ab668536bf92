#ifndef REQUANT_RUNTIME_BENCHMARK_MEASURED_BATCHES_H_
#define REQUANT_RUNTIME_BENCHMARK_MEASURED_BATCHES_H_

// The batches that graphs are measured on, and where the time of a batch goes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/session/job.pb.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace requant {

// Reads the first batches of a dataset into memory, so that reading them is no
// part of what is measured: `max_batches` of them, or as many as fit in
// `max_bytes`, but at least one. All have `options.batch_size` records, unless
// the whole dataset has fewer; a dataset without records is an error. Errors
// name the dataset as `name`.
absl::StatusOr<std::vector<Batch>> PreloadBatches(const DatasetSpec& dataset,
                                                  const std::string& name,
                                                  BatchOptions options,
                                                  int64_t max_batches,
                                                  int64_t max_bytes);

// Returns where the time of a graph goes, by type of operation and for the
// `max_nodes` costliest nodes: averages over what TensorFlow recorded of
// batches, at least one, run with FULL_TRACE. The caller knows
// `batch_microseconds` and sets it.
ProfileMessage ProfileOf(const std::vector<tensorflow::StepStats>& batches,
                         size_t max_nodes);

}  // namespace requant

#endif  // REQUANT_RUNTIME_BENCHMARK_MEASURED_BATCHES_H_
