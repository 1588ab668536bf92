#ifndef REQUANT_RUNTIME_DATASETS_FORMATS_TFRECORD_SOURCE_H_
#define REQUANT_RUNTIME_DATASETS_FORMATS_TFRECORD_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/datasets/formats/chunk_source.h"
#include "runtime/datasets/formats/column.h"

namespace requant {

// Reads `files`, one after the other: TFRecord files of tf.train.Example
// messages, plain or gzipped. Records are counted from 0 in each file.
absl::StatusOr<std::unique_ptr<ChunkSource>> OpenTfRecords(
    std::vector<std::string> files, std::vector<Column> columns);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_FORMATS_TFRECORD_SOURCE_H_
