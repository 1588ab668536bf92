#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_CSV_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_CSV_SOURCE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/formats/chunk_source.h"
#include "runtime/datasets/formats/column.h"

namespace requant {

// Reads the files of `csv`, one after the other; CsvSource in dataset.proto
// says what a field may be.
absl::StatusOr<std::unique_ptr<ChunkSource>> OpenCsv(
    const CsvSource& csv, std::vector<Column> columns);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_CSV_SOURCE_H_
