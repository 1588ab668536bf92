#ifndef REQUANT_RUNTIME_DATASETS_BATCH_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_BATCH_SOURCE_H_

// Provides records as batches of tensors, in the order of the files, and reads
// and decodes them ahead of the caller in its own threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {

struct Batch {
  // The number of the batch's first record, counted from 0 over all files;
  // skipped bad records are included.
  int64_t first_record = 0;
  // The last batch of the data may be smaller than the others.
  int64_t size = 0;
  // The tensors, in the order of DatasetSpec.input, ready to be fed.
  std::vector<tensorflow::Tensor> inputs;
  // [size, shape...]; has no elements if no label is declared.
  tensorflow::Tensor labels;
};

struct BatchOptions {
  // At least 1.
  int64_t batch_size = 512;
  // This many good records come before the first one that is returned.
  int64_t skip_records = 0;
  // The data ends after this many good records, not counting those that are
  // passed over; 0 means no limit.
  int64_t max_records = 0;
  // Up to this many unreadable records are skipped and reported to
  // `on_bad_record`, which is called within Next(). The next one is an error
  // that names its file and its number or line. The rest of a file in which no
  // further record can be found counts as one. In NumPy arrays any damage is an
  // error.
  int64_t max_bad_records = 0;
  std::function<void(const std::string& message)> on_bad_record;
  // The number of threads that read and decode; 0: one per usable core.
  int threads = 0;
  // The number of batches kept ready ahead of the caller.
  int prefetch = 4;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Fills `batch` with the next one; returns false at the end of the data. Not
  // thread-safe. After an error, every call returns that error.
  virtual absl::StatusOr<bool> Next(Batch* batch) = 0;

  // Returns the approximate total number of records, estimated from how far
  // into the files the last batch got; 0 if unknown.
  virtual int64_t EstimatedRecords() const = 0;

  // Returns how many bad records were skipped up to the last batch returned.
  virtual int64_t bad_records() const = 0;

  // Returns how many of them made the rest of their file, with an unknown
  // number of records, unreadable.
  virtual int64_t lost_rests() const = 0;
};

// Names the files of `spec` for messages, or one and the number of others.
std::string DescribeFiles(const DatasetSpec& spec);

// Opens the files after checking what can be checked without reading all of
// them: readability, CSV columns (of the first file), and NumPy types, shapes
// and counts. The declaration must be as valid as one from ReadDatasetSpec.
// Rejects in_graph sources, which their graph reads. If the files have no
// records, the first Next() fails. Messages have no control characters,
// whatever names are in the data.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenBatchSource(
    const DatasetSpec& spec, const BatchOptions& options);

// Reads the records and returns how many good ones there are, but no more than
// options.max_records. Calls `on_batch`, if it is set, now and then.
absl::StatusOr<int64_t> CountRecords(
    const DatasetSpec& spec, const BatchOptions& options,
    const std::function<void()>& on_batch = nullptr);

// Returns how many of `records` records to calibrate on: up to `most` (0: any
// number), but a fifth of all, from two records on at least one, is held back
// for verification.
int64_t RecordsToCalibrateOn(int64_t records, int64_t most);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_BATCH_SOURCE_H_
