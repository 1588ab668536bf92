#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FILES_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FILES_H_

// The Criteo challenge's records in files: read from its text, 40 columns
// (label, I1 ... I13, C1 ... C26) separated by tabs or commas, without quotes,
// and written as text or as tf.train.Examples.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/records/input_file.h"
#include "runtime/datasets/criteo/criteo_format.h"

namespace requant {

// Fills `record` from one line without its line break; its views point into
// `line`. The error says what is wrong with the row.
absl::Status ParseCriteoLine(std::string_view line, char delimiter,
                             CriteoRecord* record);

// Reads a file row by row. The first line says which delimiter the file has (a
// tab if there is one in it) and is passed over if it names the columns.
class CriteoCsvReader {
 public:
  // A line that is longer is a bad row.
  static constexpr int64_t kMaxLineBytes = 1 << 16;

  // Is called with the line number (from 1) and what is wrong. An error that it
  // returns ends the reading.
  using BadRow =
      std::function<absl::Status(int64_t line, std::string_view reason)>;

  // Opens a file; "-" is standard input.
  static absl::StatusOr<std::unique_ptr<CriteoCsvReader>> Open(
      const std::string& path, BadRow on_bad_row);

  // Fills `record` from the next good row; its views live until the next call.
  // Returns false at the end of the file.
  absl::StatusOr<bool> Next(CriteoRecord* record);

  // Returns how many bytes were taken from the file so far.
  int64_t bytes() const { return lines_.position(); }

 private:
  CriteoCsvReader(const std::string& path, std::unique_ptr<InputFile> file,
                  BadRow on_bad_row);

  // Looks at the first line: sets the delimiter; returns whether it is a
  // header.
  absl::StatusOr<bool> ReadFirstLine(std::string_view* line);

  const std::string path_;
  LineReader lines_;
  const BadRow on_bad_row_;
  char delimiter_ = ',';
};

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

// Returns the format of the name "csv", "tfrecord" or "preprocessed".
std::optional<CriteoFormat> CriteoFormatNamed(std::string_view name);

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
  void AppendRaw(const CriteoRecord& record);
  void AppendPreprocessed(const CriteoRecord& record);
  void AppendExample();

  const int fd_;
  const CriteoFormat format_;
  const NumericRanges ranges_;
  const int64_t buckets_;
  const std::vector<std::string> names_;
  // One record's Example and its features, and one feature's values, used again
  // for each.
  std::string example_;
  std::string record_;
  std::string values_;
  std::string held_;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_FILES_H_
