#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_CSV_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_CSV_H_

// The Criteo challenge's text files: 40 columns (label, I1 ... I13, C1 ... C26)
// separated by tabs or commas, without quotes.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  // Told the line number (from 1) and what is wrong. An error that it returns
  // ends the reading.
  using BadRow =
      std::function<absl::Status(int64_t line, std::string_view reason)>;

  // "-" is standard input.
  static absl::StatusOr<std::unique_ptr<CriteoCsvReader>> Open(
      const std::string& path, BadRow on_bad_row);
  ~CriteoCsvReader();
  CriteoCsvReader(const CriteoCsvReader&) = delete;
  CriteoCsvReader& operator=(const CriteoCsvReader&) = delete;

  // Fills `record` from the next good row; its views live until the next call.
  // False at the end of the file.
  absl::StatusOr<bool> Next(CriteoRecord* record);

  // What was taken from the file so far.
  int64_t bytes() const { return bytes_; }

 private:
  CriteoCsvReader(const std::string& path, int fd, BadRow on_bad_row);

  // The next line without its line break; false at the end. A line that is too
  // long is cut, and `too_long_` set.
  absl::StatusOr<bool> NextLine(std::string_view* line);
  absl::Status Fill();
  absl::Status SkipToLineEnd();
  // Looks at the first line: sets the delimiter; true if it is a header.
  absl::StatusOr<bool> ReadFirstLine(std::string_view* line);

  const std::string path_;
  const int fd_;
  const BadRow on_bad_row_;
  char delimiter_ = ',';
  std::string buffer_;
  // What of the buffer is not taken yet.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  bool too_long_ = false;
  int64_t line_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_CSV_H_
