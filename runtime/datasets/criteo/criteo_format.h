#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_

// Handles the records of the Criteo challenge as Wide & Deep models read them.
// Only this file defines the names of the columns, their order in a
// preprocessed record, the stand-ins for missing values, and how a value
// becomes a model's input. Records are read from the challenge's text or
// generated, and written as text or as tf.train.Examples.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

inline constexpr int kNumericColumns = 13;
inline constexpr int kCategoricalColumns = 26;
inline constexpr int64_t kDefaultBuckets = 1000;

// These replace values that a row lacks, in training and everywhere else. The
// empty string would not do: feature columns drop it, so a graph would look up
// nothing where a preprocessed record has a bucket. The published model was
// trained with the blank.
inline constexpr float kMissingNumeric = 0.0f;
inline constexpr std::string_view kMissingCategorical = " ";

// A row with its missing values filled in. Columns are numbered from 0:
// numeric[0] is I1, and categorical[25] is C26.
struct CriteoRecord {
  int64_t label = 0;
  std::array<float, kNumericColumns> numeric;
  // Bit i is set if the row lacks numeric[i]. (A missing category is a value.)
  uint32_t missing_numeric = 0;
  // The function that fills the record says how long these are valid.
  std::array<std::string_view, kCategoricalColumns> categorical;
};

// Return "I1" for 0, and "C26" for 25.
std::string NumericName(int column);
std::string CategoricalName(int column);

// Returns "label", "I1" to "I13", "C1" to "C26": the columns in the order of
// the challenge's text.
std::vector<std::string> CriteoColumnNames();

// Preprocessed records have their columns sorted by the names that feature
// columns give their inputs ("I1", "C1_embedding"). Element i of `numeric_1` is
// column kNumericOrder[i] (I1, I10 ... I13, I2 ... I9), and pair i of
// `string_1` is column kCategoricalOrder[i] (C10 ... C19, C1, C20 ... C26, C2
// ... C9).
inline constexpr std::array<int, kNumericColumns> kNumericOrder = {
    0, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8};
inline constexpr std::array<int, kCategoricalColumns> kCategoricalOrder = {
    9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 0, 19, 20,
    21, 22, 23, 24, 25, 1,  2,  3,  4,  5,  6, 7,  8};

// Returns a category's bucket, as TensorFlow's StringToHashBucketFast does.
int64_t HashBucket(std::string_view category, int64_t buckets);

// The parameters that normalize numeric columns to (x - min) / range.
struct NumericRanges {
  std::array<float, kNumericColumns> min;
  // Never 0. A column with a single value has range 1, so that the value
  // becomes 0, and a different one later becomes its distance from it.
  std::array<float, kNumericColumns> range;
};

// Computes in float32, as a graph does.
inline float Normalize(float value, const NumericRanges& ranges, int column) {
  return (value - ranges.min[column]) / ranges.range[column];
}

// Collects the ranges of records, with their missing values filled in.
class RangeCollector {
 public:
  void Add(const CriteoRecord& record);
  int64_t records() const { return records_; }
  // Fails if there was no record or a range exceeds float32.
  absl::StatusOr<NumericRanges> Ranges() const;

 private:
  int64_t records_ = 0;
  std::array<float, kNumericColumns> min_;
  std::array<float, kNumericColumns> max_;
};

// Returns the content of a JSON file: {"records": ..., "column": [{"name":
// "I1", "min": ..., "range": ...}, ...]}.
std::string RangesAsJson(const NumericRanges& ranges, int64_t records);
// Fails if the file lacks a column, has it twice or has no usable range for it.
absl::StatusOr<NumericRanges> ReadRanges(const std::string& path);

// Reads the challenge's text row by row: 40 columns (label, I1 ... I13, C1 ...
// C26) separated by tabs or commas, without quotes. The first line determines
// the delimiter (a tab if it has one) and is skipped if it names the columns.
// "-" is standard input.
//
// Calls `on_row` with each good row, whose views live until it returns, and
// with the number of bytes read so far, and `on_bad_row` with the line number
// (from 1) and the problem. An error of either ends the reading.
absl::Status ReadCriteoText(
    const std::string& path,
    const std::function<absl::Status(const CriteoRecord& record,
                                     int64_t bytes)>& on_row,
    const std::function<absl::Status(int64_t line, std::string_view reason)>&
        on_bad_row);

enum class CriteoFormat {
  // The challenge's text: label, I1 ... I13, C1 ... C26, separated by commas;
  // missing values are empty.
  kCsv,
  // tf.train.Example records with features `label` (int64), I1 ... I13 (float)
  // and C1 ... C26 (bytes), with missing values filled in.
  kTfRecord,
  // The model zoo's tf.train.Example records: `label` (int64), `numeric_1` (13
  // normalized floats), `string_1` (52 int64: 26 pairs of position and bucket).
  kPreprocessed,
};

// Writes records to a file descriptor. Equal records yield equal bytes.
class CriteoWriter {
 public:
  // Only kPreprocessed uses `ranges` and `buckets`.
  CriteoWriter(int fd, CriteoFormat format, const NumericRanges& ranges = {},
               int64_t buckets = kDefaultBuckets);

  absl::Status Write(const CriteoRecord& record);
  // Writes what is still buffered; must be called at the end.
  absl::Status Flush();

 private:
  void AppendCsv(const CriteoRecord& record);
  // Append to an Example's features.
  void AppendRaw(const CriteoRecord& record);
  void AppendPreprocessed(const CriteoRecord& record);

  const int fd_;
  const CriteoFormat format_;
  const NumericRanges ranges_;
  const int64_t buckets_;
  const std::vector<std::string> names_;
  // One record's features and Example, reused for each record.
  std::string features_;
  std::string example_;
  std::string held_;
};

enum class CriteoSplit { kTrain = 0, kCalibration = 1, kEval = 2 };

// Draws the next row, whose views live as long as any copy of the generator.
// Returns the probability with which its label was drawn as 1.
using CriteoGenerator = std::function<double(CriteoRecord* record)>;

// Returns a generator of rows that look like the Criteo challenge's and come
// from a known distribution. It starts at row 0 of a split.
//
// A row's 39 values are drawn independently: categories from Zipf-like
// vocabularies of 3 to 100,000 tokens, numbers from skewed distributions; some
// of each are missing. The label is 1 with probability sigmoid(score), where
// the score sums a weight per token, curves over numbers, and interactions of
// tokens with tokens and of tokens with numbers. Tokens that share one of 1000
// hash buckets share their weights, so a model that hashes into 1000 buckets
// can know all there is to know.
//
// The distribution is fixed; seed, split and row number determine the row,
// which is the same on any machine because only integer arithmetic and exactly
// specified IEEE operations are used.
CriteoGenerator MakeCriteoGenerator(uint64_t seed, CriteoSplit split);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_
