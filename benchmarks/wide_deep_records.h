#ifndef REQUANT_BENCHMARKS_WIDE_DEEP_RECORDS_H_
#define REQUANT_BENCHMARKS_WIDE_DEEP_RECORDS_H_

#include <string>

#include "absl/status/status.h"
#include "runtime/datasets/dataset.pb.h"

namespace requant {

// How many numbers and how many (column, bucket) values a record has.
inline constexpr int kNumeric = 13;
inline constexpr int kCategorical = 52;

// Writes a TFRecord file of random records as the Wide & Deep recipe
// preprocesses them.
absl::Status WriteWideDeepRecords(const std::string& path, int records);

// What of them feeds which placeholder.
DatasetSpec WideDeepDataset(const std::string& path);

}  // namespace requant

#endif  // REQUANT_BENCHMARKS_WIDE_DEEP_RECORDS_H_
