#ifndef REQUANT_RUNTIME_DATASETS_CSV_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_CSV_SOURCE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/chunk_source.h"
#include "runtime/datasets/column.h"
#include "runtime/datasets/dataset.pb.h"

namespace requant {

// Reads the files of `csv`, one after the other; CsvSource in dataset.proto
// says what a field may be.
absl::StatusOr<std::unique_ptr<ChunkSource>> OpenCsv(
    const CsvSource& csv, std::vector<Column> columns);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CSV_SOURCE_H_
