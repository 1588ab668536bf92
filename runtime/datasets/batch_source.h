#ifndef REQUANT_RUNTIME_DATASETS_BATCH_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_BATCH_SOURCE_H_

// Records as batches of tensors, in the order of the files, read and decoded
// ahead of the caller on threads of their own.

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
  // skipped bad records count.
  int64_t first_record = 0;
  // The last batch of the data may be smaller than the others.
  int64_t size = 0;
  // The tensors in the order of DatasetSpec.input, ready to be fed.
  std::vector<tensorflow::Tensor> inputs;
  // [size, shape...]; a tensor without elements when no label is declared.
  tensorflow::Tensor labels;
};

struct BatchOptions {
  // At least 1.
  int64_t batch_size = 512;
  // The data end after this many good records; 0 means never.
  int64_t max_records = 0;
  // This many unreadable records are skipped and reported to `on_bad_record`,
  // which is called within Next(); one more is an error that names its file and
  // its number or line. What is left of a file in which no further record can
  // be found counts as one. NumPy arrays have no bad records: damage is an
  // error.
  int64_t max_bad_records = 0;
  std::function<void(const std::string& message)> on_bad_record;
  // Threads that read and decode; 0 means one per usable core.
  int threads = 0;
  // Batches kept ready ahead of the caller.
  int prefetch = 4;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Fills `batch` with the next one; returns false at the end of the data. Not
  // thread-safe. After an error every call returns that error.
  virtual absl::StatusOr<bool> Next(Batch* batch) = 0;

  // Returns about how many records there are in all, by how far into its files
  // the last batch came; 0 when that is not known.
  virtual int64_t EstimatedRecords() const = 0;

  // Returns how many bad records were skipped up to the last batch returned.
  virtual int64_t bad_records() const = 0;

  // Returns after how many of them the rest of their file, with an unknown
  // number of records, could not be read.
  virtual int64_t lost_rests() const = 0;
};

// Returns the files of `spec` for messages, or the first and how many more.
std::string DescribeFiles(const DatasetSpec& spec);

// Opens the files after checking what can be checked before they are read
// through: that they can be read, CSV columns (of the first file), and NumPy
// types, shapes and counts. The declaration is one that ReadDatasetSpec gives,
// or as good. Sources of kind in_graph are refused: their graph reads them.
// Files without any record give an error on the first Next(). Messages have no
// control characters, whatever the names in the data.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenBatchSource(
    const DatasetSpec& spec, const BatchOptions& options);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_BATCH_SOURCE_H_
