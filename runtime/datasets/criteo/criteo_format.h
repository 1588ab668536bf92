#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_

// The records of the Criteo challenge as Wide & Deep models read them: the one
// place that says what the columns are called, in which order a preprocessed
// record has them, what stands for a missing value, and how a value becomes a
// model's input.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/datasets/criteo/criteo_ranges.pb.h"

namespace requant {

inline constexpr int kNumericColumns = 13;
inline constexpr int kCategoricalColumns = 26;
inline constexpr int kCriteoColumns = 1 + kNumericColumns + kCategoricalColumns;
inline constexpr int64_t kDefaultBuckets = 1000;

// What stands for a value that a row lacks, in training and everywhere else.
// Not the empty string: feature columns drop that, so that a graph would look
// up nothing where a preprocessed record has a bucket. The blank is what the
// published model was trained with.
inline constexpr float kMissingNumeric = 0.0f;
inline constexpr std::string_view kMissingCategorical = " ";

// A row with its missing values filled. Columns are numbered from 0: numeric[0]
// is I1, categorical[25] is C26.
struct CriteoRecord {
  int64_t label = 0;
  std::array<float, kNumericColumns> numeric;
  // Bit i: the row lacks numeric[i]. (A missing category is its own value.)
  uint32_t missing_numeric = 0;
  // Valid as long as whoever filled the record says.
  std::array<std::string_view, kCategoricalColumns> categorical;
};

// Return "I1" for 0, and "C26" for 25.
std::string NumericName(int column);
std::string CategoricalName(int column);

// Returns "label", "I1" to "I13", "C1" to "C26", as the challenge's text has
// the columns.
std::vector<std::string> CriteoColumnNames();

// Preprocessed records have their columns sorted by the names that
// feature columns give their inputs ("I1", "C1_embedding"): element i of
// `numeric_1` is column kNumericOrder[i] (I1, I10 ... I13, I2 ... I9), pair i
// of `string_1` is column kCategoricalOrder[i] (C10 ... C19, C1, C20 ... C26,
// C2 ... C9).
inline constexpr std::array<int, kNumericColumns> kNumericOrder = {
    0, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8};
inline constexpr std::array<int, kCategoricalColumns> kCategoricalOrder = {
    9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 0, 19, 20,
    21, 22, 23, 24, 25, 1,  2,  3,  4,  5,  6, 7,  8};

// Returns a category's bucket, by TensorFlow's StringToHashBucketFast.
int64_t HashBucket(std::string_view category, int64_t buckets);

// Where numeric columns are normalised to (x - min) / range.
struct NumericRanges {
  std::array<float, kNumericColumns> min;
  // Never 0. A column with a single value has range 1, so that its values
  // become 0 (another value met later is taken as far from it as it is).
  std::array<float, kNumericColumns> range;
};

// Computes in float32, as a graph does.
inline float Normalize(float value, const NumericRanges& ranges, int column) {
  return (value - ranges.min[column]) / ranges.range[column];
}

// Ranges of the records seen, missing values filled.
class RangeCollector {
 public:
  void Add(const CriteoRecord& record);
  int64_t records() const { return records_; }
  // Fails when no record was seen or a range exceeds float32.
  absl::StatusOr<NumericRanges> Ranges() const;

 private:
  int64_t records_ = 0;
  std::array<float, kNumericColumns> min_;
  std::array<float, kNumericColumns> max_;
};

// Returns ranges as a JSON file has them: {"records": ..., "column": [{"name":
// "I1", "min": ..., "range": ...}, ...]}.
std::string RangesAsJson(const NumericRanges& ranges, int64_t records);
// Refuses a file that lacks a column, has it twice or has no usable range.
absl::StatusOr<NumericRanges> ReadRanges(const std::string& path);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_
