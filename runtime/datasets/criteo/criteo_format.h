#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_

// The records of the Criteo challenge as Wide & Deep models read them: the one
// place that says what the columns are called, in which order a preprocessed
// record has them, what stands for a missing value, and how a value becomes a
// model's input. They are read from the challenge's text, written as text or as
// tf.train.Examples, or made up.

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

// Reads the challenge's text row by row: 40 columns (label, I1 ... I13, C1 ...
// C26) separated by tabs or commas, without quotes. The first line says which
// delimiter the file has (a tab if there is one in it) and is passed over if it
// names the columns. "-" is standard input.
//
// `on_row` is called with each good row, whose views live until it returns, and
// with how many bytes were taken from the file so far; `on_bad_row` with the
// line number (from 1) and what is wrong. An error of either ends the reading.
absl::Status ReadCriteoText(
    const std::string& path,
    const std::function<absl::Status(const CriteoRecord& record,
                                     int64_t bytes)>& on_row,
    const std::function<absl::Status(int64_t line, std::string_view reason)>&
        on_bad_row);

enum class CriteoFormat {
  // The challenge's text: label, I1 ... I13, C1 ... C26, separated by commas;
  // nothing stands for a missing value.
  kCsv,
  // tf.train.Example records with features `label` (int64), I1 ... I13 (float)
  // and C1 ... C26 (bytes), missing values filled.
  kTfRecord,
  // The model zoo's tf.train.Example records: `label` (int64), `numeric_1` (13
  // normalised floats), `string_1` (52 int64: 26 pairs of position and bucket).
  kPreprocessed,
};

// Writes records to a descriptor. The same records give the same bytes.
class CriteoWriter {
 public:
  // `ranges` and `buckets` are used by kPreprocessed alone.
  CriteoWriter(int fd, CriteoFormat format, const NumericRanges& ranges = {},
               int64_t buckets = kDefaultBuckets);

  absl::Status Write(const CriteoRecord& record);
  // Writes what is still held; must be called at the end.
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
  // One record's features and Example, used again for each.
  std::string features_;
  std::string example_;
  std::string held_;
};

enum class CriteoSplit { kTrain = 0, kCalibration = 1, kEval = 2 };

// Draws the next row; its views live as long as a copy of the generator.
// Returns the probability with which its label was to be 1.
using CriteoGenerator = std::function<double(CriteoRecord* record)>;

// Returns a generator of rows that look like the Criteo challenge's, drawn from
// a known distribution, which starts at row 0 of a split.
//
// A row's 39 values are drawn independently: categories from Zipf-like
// vocabularies of 3 to 100,000 tokens, numbers from skewed distributions, some
// of each missing. The label is 1 with probability sigmoid(score), where the
// score sums a weight per token, curves over numbers, and interactions of
// tokens with tokens and of tokens with numbers. Tokens that share one of 1000
// hash buckets share their weights, so a model that hashes into 1000 buckets
// can know all there is to know.
//
// The distribution is fixed; seed, split and row number decide what is drawn.
// They give the same row on any machine: it takes only integer arithmetic and
// IEEE operations that round one way only.
CriteoGenerator MakeCriteoGenerator(uint64_t seed, CriteoSplit split);

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FORMAT_H_
