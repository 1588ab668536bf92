#include "runtime/benchmark/preloaded_batches.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/datasets/batch_source.h"
#include "runtime/datasets/dataset.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace requant {
namespace {

int64_t Bytes(const Batch& batch) {
  int64_t bytes = 0;
  for (const tensorflow::Tensor& input : batch.inputs) {
    bytes += static_cast<int64_t>(input.TotalBytes());
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::vector<Batch>> PreloadBatches(const DatasetSpec& dataset,
                                                  const std::string& name,
                                                  BatchOptions options,
                                                  int64_t max_batches,
                                                  int64_t max_bytes) {
  if (dataset.has_in_graph()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        ": its records are read by the graph itself (in_graph) and "
        "cannot be preloaded; requant evaluate times such a "
        "graph"));
  }
  REQUANT_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> source,
                           OpenBatchSource(dataset, options));
  std::vector<Batch> batches;
  int64_t bytes = 0;
  while (static_cast<int64_t>(batches.size()) < max_batches &&
         (batches.empty() || bytes < max_bytes)) {
    Batch batch;
    REQUANT_ASSIGN_OR_RETURN(const bool more, source->Next(&batch));
    if (!more) break;
    if (batch.size < options.batch_size && !batches.empty()) break;
    bytes += Bytes(batch);
    batches.push_back(std::move(batch));
  }
  if (batches.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has no records to run"));
  }
  return batches;
}

}  // namespace requant
