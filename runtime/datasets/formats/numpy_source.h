#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_NUMPY_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_NUMPY_SOURCE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/dataset.pb.h"
#include "runtime/datasets/formats/chunk_source.h"
#include "runtime/datasets/formats/column.h"

namespace requant {

// Reads the arrays of `numpy` as streams, row by row, so that memory does not
// depend on their size. All headers are checked at once.
absl::StatusOr<std::unique_ptr<ChunkSource>> OpenNumpy(
    const NumpySource& numpy, std::vector<Column> columns);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_NUMPY_SOURCE_H_
